// Events: a place in a stream that others wait for.
#include "call.h"

namespace moegrad::hostacl {

namespace {

int NeedEvent(const Call& call, aclrtEvent handle, const char* argument, std::shared_ptr<Event>* event)
{
    if (const int error = call.NeedInit()) {
        return error;
    }
    return call.NeedObject(Now().events, handle, argument, event);
}

int NeedRecordedEvent(const Call& call, aclrtEvent handle, const char* argument, std::shared_ptr<Event>* event)
{
    if (const int error = NeedEvent(call, handle, argument, event)) {
        return error;
    }
    if ((*event)->recorded == 0) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, argument, " #", (*event)->number,
                         " was never recorded: a device would wait for ever");
    }
    return ACL_SUCCESS;
}

constexpr uint32_t kAllFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

int CreateEvent(const Call& call, aclrtEvent* event, uint32_t flags)
{
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = call.NeedArgument(event, "event")) {
        return error;
    }
    if ((flags & ~kAllFlags) != 0) {
        return call.Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "flag is ", flags, ", known are ACL_EVENT_SYNC, ",
                         "ACL_EVENT_CAPTURE_STREAM_PROGRESS and ACL_EVENT_TIME_LINE");
    }
    Event made{NextNumber(), context->device, flags, 0, 0, {}, {}};
    *event = Now().events.Add(std::make_shared<Event>(std::move(made)));
    return ACL_SUCCESS;
}

int NeedFlag(const Call& call, const Event& event, uint32_t flag, const char* name)
{
    return (event.flags & flag) != 0 ? ACL_SUCCESS
                                     : call.Fail(ACL_ERROR_RT_PARAM_INVALID, "event #", event.number,
                                                 " was created without ", name);
}

// A stream that is gone was finished before, or dropped the record.
void RunUpTo(const Event& event, const std::weak_ptr<Stream>& stream, uint64_t record)
{
    if (const std::shared_ptr<Stream> alive = stream.lock()) {
        RunUntil(*alive, [&] { return event.completed >= record; });
    }
}

}  // namespace

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclError aclrtCreateEvent(aclrtEvent* event) { return CreateEvent(Call("aclrtCreateEvent"), event, kAllFlags); }

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag)
{
    return CreateEvent(Call("aclrtCreateEventWithFlag"), event, flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag)
{
    return CreateEvent(Call("aclrtCreateEventExWithFlag"), event, flag);
}

// Queued records and waits keep what they need of it.
aclError aclrtDestroyEvent(aclrtEvent event)
{
    const Call call("aclrtDestroyEvent");
    std::shared_ptr<Event> object;
    if (const int error = NeedEvent(call, event, "event", &object)) {
        return error;
    }
    Now().events.Remove(object->number);
    return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    const Call call("aclrtRecordEvent");
    std::shared_ptr<Event> object;
    if (const int error = NeedEvent(call, event, "event", &object)) {
        return error;
    }
    std::shared_ptr<Stream> queue;
    if (const int error = call.NeedStream(stream, &queue)) {
        return error;
    }
    const uint64_t record = ++object->recorded;
    object->stream = queue;
    queue->tasks.push_back([object, record] {
        object->completed = record;
        object->time = std::chrono::steady_clock::now();
        return ACL_SUCCESS;
    });
    return ACL_SUCCESS;
}

// Waits for the latest record before this call. A record precedes its waits, so no two streams wait for each other.
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    const Call call("aclrtStreamWaitEvent");
    std::shared_ptr<Event> object;
    if (const int error = NeedRecordedEvent(call, event, "event", &object)) {
        return error;
    }
    if (const int error = NeedFlag(call, *object, ACL_EVENT_SYNC, "ACL_EVENT_SYNC")) {
        return error;
    }
    std::shared_ptr<Stream> queue;
    if (const int error = call.NeedStream(stream, &queue)) {
        return error;
    }
    queue->tasks.push_back([object, from = object->stream, record = object->recorded] {
        RunUpTo(*object, from, record);
        return ACL_SUCCESS;
    });
    return ACL_SUCCESS;
}

// An error of the work before the record stays for the wait for its stream, too.
aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    const Call call("aclrtSynchronizeEvent");
    std::shared_ptr<Event> object;
    if (const int error = NeedRecordedEvent(call, event, "event", &object)) {
        return error;
    }
    RunUpTo(*object, object->stream, object->recorded);
    const std::shared_ptr<Stream> stream = object->stream.lock();
    const bool failed = stream != nullptr && stream->error != ACL_SUCCESS;
    if (failed) {
        return Fail(stream->error, stream->error_text);
    }
    return object->completed == object->recorded ? ACL_SUCCESS
                                                 : call.Fail(ACL_ERROR_RT_PARAM_INVALID, "event #", object->number,
                                                             " never completes: its stream was destroyed by force");
}

// As with streams: what was recorded is complete by the time that somebody asks.
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status)
{
    const Call call("aclrtQueryEventStatus");
    std::shared_ptr<Event> object;
    if (const int error = NeedEvent(call, event, "event", &object)) {
        return error;
    }
    if (const int error = call.NeedArgument(status, "status")) {
        return error;
    }
    RunUpTo(*object, object->stream, object->recorded);
    const bool complete = object->recorded != 0 && object->completed == object->recorded;
    *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    const Call call("aclrtEventElapsedTime");
    std::shared_ptr<Event> start;
    std::shared_ptr<Event> end;
    if (const int error = NeedRecordedEvent(call, startEvent, "startEvent", &start)) {
        return error;
    }
    if (const int error = NeedRecordedEvent(call, endEvent, "endEvent", &end)) {
        return error;
    }
    if (const int error = call.NeedArgument(ms, "ms")) {
        return error;
    }
    for (const std::shared_ptr<Event>& event : {start, end}) {
        if (const int error = NeedFlag(call, *event, ACL_EVENT_TIME_LINE, "ACL_EVENT_TIME_LINE")) {
            return error;
        }
        if (event->completed < event->recorded) {
            return call.Fail(ACL_ERROR_RT_EVENT_NOT_COMPLETE, "event #", event->number,
                             " is not complete; synchronise first");
        }
    }
    if (end->time < start->time) {
        return call.Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "endEvent #", end->number,
                         " was recorded before startEvent #", start->number);
    }
    *ms = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return ACL_SUCCESS;
}
