#include <thread>

#include "cases.h"

namespace {

// Queues a piece of work through an executor.
void Queue(aclrtStream stream, Work work)
{
    OK(RunExecutor("aclnnThing", nullptr, 0, NewExecutor("aclnnThing", 0, {}, std::move(work)), stream));
}

Work Append(std::string* log, char letter)
{
    return [log, letter](void*) {
        *log += letter;
        return ACLNN_SUCCESS;
    };
}

Work FailWith(aclnnStatus status, const std::string& text)
{
    return [status, text](void*) { return Fail(status, text); };
}

}  // namespace

CASE(work_runs_in_order_and_late)
{
    Begin();
    std::string log;
    aclrtStream first;
    aclrtStream second;
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStreamWithConfig(&second, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    Queue(first, Append(&log, 'a'));
    Queue(second, Append(&log, 'b'));
    Queue(first, Append(&log, 'c'));
    Queue(nullptr, Append(&log, 'd'));
    TRUE(log.empty());
    OK(aclrtSynchronizeStream(second));
    TRUE(log == "b");
    OK(aclrtSynchronizeStreamWithTimeout(first, 100));
    TRUE(log == "bac");
    OK(aclrtSynchronizeDevice());
    TRUE(log == "bacd");
    Queue(second, Append(&log, 'e'));
    OK(aclrtDestroyStream(second));
    TRUE(log == "bacde");
    Queue(first, Append(&log, 'f'));
    OK(aclrtFree(Device(8)));
    TRUE(log == "bacde");
    OK(aclrtFreeWithDevSync(Device(8)));
    TRUE(log == "bacdef");
    OK(aclrtDestroyStream(first));
    End();
}

CASE(errors_of_work_come_with_the_wait)
{
    Begin();
    std::string log;
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    Queue(stream, Append(&log, 'a'));
    Queue(stream, FailWith(ACLNN_ERR_INNER_TILING_ERROR, "first"));
    Queue(stream, FailWith(ACLNN_ERR_INNER, "second"));
    Queue(stream, Append(&log, 'b'));
    REFUSED(aclrtSynchronizeStream(stream), ACLNN_ERR_INNER_TILING_ERROR, "first");
    TRUE(log == "ab");
    OK(aclrtSynchronizeStream(stream));
    Queue(stream, [](void*) { return ACLNN_ERR_INNER; });
    REFUSED(aclrtSynchronizeDevice(), ACLNN_ERR_INNER, "aclnnThing: failed with code 561000");
    Queue(stream, FailWith(ACLNN_ERR_INNER, "third"));
    REFUSED(aclrtDestroyStream(stream), ACLNN_ERR_INNER, "third");
    Queue(nullptr, FailWith(ACLNN_ERR_INNER, "fourth"));
    REFUSED(aclrtResetDevice(0), ACLNN_ERR_INNER, "fourth");
    OK(aclFinalize());
}

CASE(good_work_keeps_an_unread_error)
{
    Begin();
    std::string log;
    Queue(nullptr, Append(&log, 'a'));
    TRUE(aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM);
    OK(aclrtSynchronizeStream(nullptr));
    TRUE(Message() == "aclrtFree: devPtr is null");
    End();
}

CASE(wrong_streams)
{
    Begin();
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    REFUSED(aclrtCreateStream(nullptr), ACL_ERROR_INVALID_PARAM, "aclrtCreateStream: stream is null");
    REFUSED(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM, "aclrtDestroyStream: stream is null");
    int local = 0;
    REFUSED(aclrtSynchronizeStream(&local), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtSynchronizeStream: stream is no stream of this process: *");
    REFUSED(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtSynchronizeStreamWithTimeout: timeout is 0, expected -1 or more than 0 ms");
    OK(aclrtSetDevice(1));
    REFUSED(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT,
            "aclrtSynchronizeStream: stream #2 belongs to context #1 on device 0, "
            "the thread's context is #3 on device 1");
    REFUSED(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CONTEXT, "aclrtDestroyStream: stream #2 belongs *");
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    OK(aclrtDestroyStream(stream));
    REFUSED(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtDestroyStream: stream names stream #2, which is gone");
    REFUSED(aclrtMemsetAsync(Device(8), 8, 0, 8, stream), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtMemsetAsync: stream names stream #2, which is gone");
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

CASE(streams_of_another_thread)
{
    Begin();
    std::string log;
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    Queue(stream, Append(&log, 'a'));
    Queue(stream, FailWith(ACLNN_ERR_INNER, "mine"));
    std::thread([&] {
        REFUSED(aclrtSynchronizeStream(stream), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSynchronizeStream: this thread has *");
        OK(aclrtSetDevice(0));
        REFUSED(aclrtSynchronizeStream(stream), ACLNN_ERR_INNER, "mine");
        OK(aclrtResetDevice(0));
    }).join();
    TRUE(log == "a" && aclGetRecentErrMsg() == nullptr);
    OK(aclrtDestroyStream(stream));
    End();
}

CASE(events_order_streams)
{
    Begin();
    std::string log;
    aclrtStream first;
    aclrtStream second;
    aclrtEvent event;
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEvent(&event));
    Queue(first, Append(&log, 'a'));
    OK(aclrtRecordEvent(event, first));
    Queue(first, Append(&log, 'b'));
    OK(aclrtStreamWaitEvent(second, event));
    Queue(second, Append(&log, 'c'));
    OK(aclrtSynchronizeStream(second));
    TRUE(log == "ac");
    OK(aclrtRecordEvent(event, first));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(first));
    TRUE(log == "acb");
    OK(aclrtDestroyStream(second));
    End();
}

CASE(events_are_waited_for)
{
    Begin();
    std::string log;
    aclrtEvent start;
    aclrtEvent end;
    OK(aclrtCreateEvent(&start));
    OK(aclrtCreateEvent(&end));
    float ms = -1;
    REFUSED(aclrtSynchronizeEvent(start), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtSynchronizeEvent: event #2 was never recorded: a device would wait for ever");
    REFUSED(aclrtStreamWaitEvent(nullptr, start), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtStreamWaitEvent: event #2 was never recorded: a device would wait for ever");
    OK(aclrtRecordEvent(start, nullptr));
    Queue(nullptr, Append(&log, 'a'));
    Queue(nullptr, FailWith(ACLNN_ERR_INNER, "bad"));
    OK(aclrtRecordEvent(end, nullptr));
    Queue(nullptr, Append(&log, 'b'));
    OK(aclrtSynchronizeEvent(start));
    REFUSED(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_EVENT_NOT_COMPLETE,
            "aclrtEventElapsedTime: event #3 is not complete; synchronise first");
    REFUSED(aclrtSynchronizeEvent(end), ACLNN_ERR_INNER, "bad");
    TRUE(log == "a");
    OK(aclrtEventElapsedTime(&ms, start, end));
    TRUE(ms >= 0);
    REFUSED(aclrtEventElapsedTime(&ms, end, start), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
            "aclrtEventElapsedTime: endEvent #2 was recorded before startEvent #3");
    REFUSED(aclrtSynchronizeStream(nullptr), ACLNN_ERR_INNER, "bad");
    TRUE(log == "ab");
    OK(aclrtDestroyEvent(start));
    OK(aclrtDestroyEvent(end));
    REFUSED(aclrtRecordEvent(end, nullptr), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtRecordEvent: event names event #3, which is gone");
    End();
}

CASE(streams_are_asked)
{
    Begin();
    std::string log;
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    Queue(stream, Append(&log, 'a'));
    Queue(stream, FailWith(ACLNN_ERR_INNER, "bad"));
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    OK(aclrtStreamQuery(stream, &status));
    TRUE(status == ACL_STREAM_STATUS_COMPLETE && log == "a");
    REFUSED(aclrtStreamQuery(stream, nullptr), ACL_ERROR_INVALID_PARAM, "aclrtStreamQuery: status is null");
    REFUSED(aclrtSynchronizeStream(stream), ACLNN_ERR_INNER, "bad");
    OK(aclrtDestroyStream(stream));
    REFUSED(aclrtStreamQuery(stream, &status), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtStreamQuery: stream names stream #2, which is gone");
    End();
}

CASE(streams_go_by_force)
{
    Begin();
    std::string log;
    aclrtStream stream;
    aclrtEvent event;
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateEvent(&event));
    Queue(stream, Append(&log, 'a'));
    OK(aclrtRecordEvent(event, stream));
    REFUSED(aclrtDestroyStreamForce(nullptr), ACL_ERROR_INVALID_PARAM, "aclrtDestroyStreamForce: stream is null");
    OK(aclrtDestroyStreamForce(stream));
    TRUE(log.empty());
    REFUSED(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtDestroyStreamForce: stream names stream #2, which is gone");
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    OK(aclrtQueryEventStatus(event, &status));
    TRUE(status == ACL_EVENT_RECORDED_STATUS_NOT_READY);
    REFUSED(aclrtSynchronizeEvent(event), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtSynchronizeEvent: event #3 never completes: its stream was destroyed by force");
    OK(aclrtDestroyEvent(event));
    End();
}

CASE(events_are_asked)
{
    Begin();
    std::string log;
    aclrtEvent event;
    OK(aclrtCreateEvent(&event));
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    OK(aclrtQueryEventStatus(event, &status));
    TRUE(status == ACL_EVENT_RECORDED_STATUS_NOT_READY);
    Queue(nullptr, Append(&log, 'a'));
    OK(aclrtRecordEvent(event, nullptr));
    Queue(nullptr, Append(&log, 'b'));
    OK(aclrtQueryEventStatus(event, &status));
    TRUE(status == ACL_EVENT_RECORDED_STATUS_COMPLETE && log == "a");
    REFUSED(aclrtQueryEventStatus(event, nullptr), ACL_ERROR_INVALID_PARAM, "aclrtQueryEventStatus: status is null");
    OK(aclrtSynchronizeStream(nullptr));
    OK(aclrtDestroyEvent(event));
    REFUSED(aclrtQueryEventStatus(event, &status), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtQueryEventStatus: event names event #2, which is gone");
    End();
}

CASE(flags_of_events)
{
    Begin();
    aclrtEvent order;
    aclrtEvent time;
    OK(aclrtCreateEventWithFlag(&order, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&time, ACL_EVENT_TIME_LINE));
    OK(aclrtRecordEvent(order, nullptr));
    OK(aclrtRecordEvent(time, nullptr));
    OK(aclrtStreamWaitEvent(nullptr, order));
    REFUSED(aclrtStreamWaitEvent(nullptr, time), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtStreamWaitEvent: event #3 was created without ACL_EVENT_SYNC");
    OK(aclrtSynchronizeEvent(order));
    OK(aclrtSynchronizeEvent(time));
    float ms = -1;
    OK(aclrtEventElapsedTime(&ms, time, time));
    TRUE(ms == 0);
    REFUSED(aclrtEventElapsedTime(&ms, time, order), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtEventElapsedTime: event #2 was created without ACL_EVENT_TIME_LINE");
    OK(aclrtDestroyEvent(order));
    OK(aclrtDestroyEvent(time));
    REFUSED(aclrtCreateEventWithFlag(nullptr, 0), ACL_ERROR_INVALID_PARAM, "aclrtCreateEventWithFlag: event is null");
    REFUSED(aclrtCreateEventWithFlag(&order, 64), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            "aclrtCreateEventWithFlag: flag is 64, known are ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS and "
            "ACL_EVENT_TIME_LINE");
    End();
}
