// Contexts, the one of each thread, and the checks that most functions begin with.
#include "call.h"

namespace moegrad::hostacl {

namespace {

thread_local void* thread_context = nullptr;  // a handle, perhaps of a context that is gone

}  // namespace

void* AddContext(int32_t device, bool made_by_set_device)
{
    const uint64_t number = NextNumber();
    auto stream = std::make_shared<Stream>(Stream{number, device, number, {}, 0, {}});
    return Now().contexts.Add(std::make_shared<Context>(Context{number, device, made_by_set_device, stream}));
}

void RemoveContext(const Context& context)
{
    const auto streams = Now().streams.objects();
    for (const auto& [handle, stream] : streams) {
        if (stream->context == context.number) {
            Now().streams.Remove(stream->number);
        }
    }
    Now().contexts.Remove(context.number);
}

std::shared_ptr<Context> ThreadContext() { return Now().contexts.Find(thread_context); }

void SetThreadContext(void* handle) { thread_context = handle; }

int Call::NeedInit() const
{
    const bool started = Now().acl_started || Now().aclnn_started;
    return started ? ACL_SUCCESS : Fail(ACL_ERROR_UNINITIALIZE, "the ACL is not initialised; call aclInit first");
}

int Call::NeedContext(Context** context) const
{
    if (const int error = NeedInit()) {
        return error;
    }
    *context = ThreadContext().get();
    return *context != nullptr ? ACL_SUCCESS
                               : Fail(ACL_ERROR_RT_CONTEXT_NULL,
                                      "this thread has no device; call aclrtSetDevice or aclrtSetCurrentContext first");
}

int Call::NeedDeviceId(int32_t device) const
{
    return device >= 0 && device < kDevices
               ? ACL_SUCCESS
               : Fail(ACL_ERROR_RT_INVALID_DEVICEID, "deviceId is ", device, ", expected 0 to ", kDevices - 1);
}

int Call::NeedArgument(const void* pointer, const char* argument) const
{
    return pointer != nullptr ? ACL_SUCCESS : Fail(ACL_ERROR_INVALID_PARAM, argument, " is null");
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId)
{
    const Call call("aclrtCreateContext");
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (const int error = call.NeedArgument(context, "context")) {
        return error;
    }
    if (const int error = call.NeedDeviceId(deviceId)) {
        return error;
    }
    *context = AddContext(deviceId, false);
    SetThreadContext(*context);
    return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context)
{
    const Call call("aclrtDestroyContext");
    if (const int error = call.NeedInit()) {
        return error;
    }
    std::shared_ptr<Context> object;
    if (const int error = call.NeedObject(Now().contexts, context, "context", &object)) {
        return error;
    }
    if (object->made_by_set_device) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, "context #", object->number,
                         " was made by aclrtSetDevice; only aclrtResetDevice releases it");
    }
    for (const auto& [handle, stream] : Now().streams.objects()) {
        if (stream->context == object->number) {
            return call.Fail(ACL_ERROR_RT_PARAM_INVALID, "context #", object->number, " still has stream #",
                             stream->number, "; destroy it first");
        }
    }
    const int error = Finish(*object->default_stream);
    RemoveContext(*object);
    return error;
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
    const Call call("aclrtSetCurrentContext");
    if (const int error = call.NeedInit()) {
        return error;
    }
    std::shared_ptr<Context> object;
    if (const int error = call.NeedObject(Now().contexts, context, "context", &object)) {
        return error;
    }
    SetThreadContext(context);
    return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context)
{
    const Call call("aclrtGetCurrentContext");
    Context* current;
    if (const int error = call.NeedContext(&current)) {
        return error;
    }
    if (const int error = call.NeedArgument(context, "context")) {
        return error;
    }
    *context = ToHandle(Kind::kContext, current->number);
    return ACL_SUCCESS;
}
