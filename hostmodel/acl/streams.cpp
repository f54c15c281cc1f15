// Streams: queued work runs when somebody waits for it, in order, and not before.
#include "call.h"

namespace moegrad::hostacl {

namespace {

void RunNext(Stream& stream)
{
    const Task task = std::move(stream.tasks.front());
    stream.tasks.pop_front();
    const int error = task();
    if (error != ACL_SUCCESS && stream.error == ACL_SUCCESS) {
        stream.error = error;
        stream.error_text = TakeRecentError();
    }
}

int CreateStream(const Call& call, aclrtStream* stream)
{
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = call.NeedArgument(stream, "stream")) {
        return error;
    }
    Stream made{NextNumber(), context->device, context->number, {}, 0, {}};
    *stream = Now().streams.Add(std::make_shared<Stream>(std::move(made)));
    return ACL_SUCCESS;
}

int DestroyStream(const Call& call, aclrtStream stream, bool by_force)
{
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (const int error = call.NeedArgument(stream, "stream")) {
        return error;
    }
    std::shared_ptr<Stream> object;
    if (const int error = call.NeedStream(stream, &object)) {
        return error;
    }
    const int error = by_force ? ACL_SUCCESS : Finish(*object);
    Now().streams.Remove(object->number);
    return error;
}

int SynchronizeStream(const Call& call, aclrtStream stream)
{
    std::shared_ptr<Stream> object;
    if (const int error = call.NeedStream(stream, &object)) {
        return error;
    }
    return Finish(*object);
}

}  // namespace

int Call::NeedStream(const void* handle, std::shared_ptr<Stream>* stream) const
{
    Context* context;
    if (const int error = NeedContext(&context)) {
        return error;
    }
    if (handle == nullptr) {
        *stream = context->default_stream;
        return ACL_SUCCESS;
    }
    if (const int error = NeedObject(Now().streams, handle, "stream", stream)) {
        return error;
    }
    if ((*stream)->context != context->number) {
        return Fail(ACL_ERROR_RT_STREAM_CONTEXT, "stream #", (*stream)->number, " belongs to context #",
                    (*stream)->context, " on device ", (*stream)->device, ", the thread's context is #",
                    context->number, " on device ", context->device);
    }
    return ACL_SUCCESS;
}

void RunUntil(Stream& stream, const std::function<bool()>& done)
{
    while (!stream.tasks.empty() && !done()) {
        RunNext(stream);
    }
}

int Finish(Stream& stream)
{
    RunUntil(stream, [] { return false; });
    const int error = stream.error;
    if (error != ACL_SUCCESS) {
        SetRecentError(stream.error_text);
    }
    stream.error = ACL_SUCCESS;
    return error;
}

int FinishDevice(int32_t device)
{
    std::vector<std::shared_ptr<Stream>> streams;
    for (const auto& [handle, context] : Now().contexts.objects()) {
        streams.push_back(context->default_stream);
    }
    for (const auto& [handle, stream] : Now().streams.objects()) {
        streams.push_back(stream);
    }
    int first = ACL_SUCCESS;
    std::string text;
    for (const std::shared_ptr<Stream>& stream : streams) {
        const int error = stream->device == device ? Finish(*stream) : ACL_SUCCESS;
        if (error != ACL_SUCCESS && first == ACL_SUCCESS) {
            first = error;
            text = TakeRecentError();
        }
    }
    return first == ACL_SUCCESS ? first : Fail(first, text);
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclError aclrtCreateStream(aclrtStream* stream) { return CreateStream(Call("aclrtCreateStream"), stream); }

// Priority and flags change how fast a device is, not what it does.
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t)
{
    return CreateStream(Call("aclrtCreateStreamWithConfig"), stream);
}

aclError aclrtDestroyStream(aclrtStream stream) { return DestroyStream(Call("aclrtDestroyStream"), stream, false); }

aclError aclrtDestroyStreamForce(aclrtStream stream)
{
    return DestroyStream(Call("aclrtDestroyStreamForce"), stream, true);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status)
{
    const Call call("aclrtStreamQuery");
    std::shared_ptr<Stream> object;
    if (const int error = call.NeedStream(stream, &object)) {
        return error;
    }
    if (const int error = call.NeedArgument(status, "status")) {
        return error;
    }
    RunUntil(*object, [] { return false; });
    *status = ACL_STREAM_STATUS_COMPLETE;
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    return SynchronizeStream(Call("aclrtSynchronizeStream"), stream);
}

// Work never lasts: it runs on the calling thread.
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
    const Call call("aclrtSynchronizeStreamWithTimeout");
    if (timeout != -1 && timeout <= 0) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, "timeout is ", timeout, ", expected -1 or more than 0 ms");
    }
    return SynchronizeStream(call, stream);
}
