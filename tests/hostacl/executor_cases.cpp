#include "cases.h"

namespace {

const Work kNothing = [](void*) { return ACLNN_SUCCESS; };

aclOpExecutor* New(uint64_t workspace, std::vector<Extent> extents = {}, Work work = kNothing)
{
    aclOpExecutor* const executor = NewExecutor("aclnnThing", workspace, std::move(extents), std::move(work));
    TRUE(executor != nullptr);
    return executor;
}

aclnnStatus Thing(void* workspace, uint64_t bytes, aclOpExecutor* executor, aclrtStream stream = nullptr)
{
    return RunExecutor("aclnnThing", workspace, bytes, executor, stream);
}

}  // namespace

CASE(executors_work_once)
{
    Begin();
    void* const workspace = Device(1024);
    void* seen = nullptr;
    aclOpExecutor* const executor = New(1000, {}, [&](void* given) {
        seen = given;
        return ACLNN_SUCCESS;
    });
    OK(Thing(workspace, 1024, executor));
    TRUE(seen == nullptr);
    OK(aclrtSynchronizeStream(nullptr));
    TRUE(seen == workspace);
    REFUSED(Thing(workspace, 1024, executor), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: executor names executor #3, which is gone; the second phase uses it up");
    REFUSED(Thing(workspace, 1024, nullptr), ACLNN_ERR_PARAM_NULLPTR, "aclnnThing: executor is null");
    REFUSED(Thing(workspace, 1024, reinterpret_cast<aclOpExecutor*>(&seen)), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: executor is no executor of this process: *");
    OK(aclrtFree(workspace));
    End();
}

CASE(repeatable_executors)
{
    Begin();
    int runs = 0;
    aclOpExecutor* const executor = New(0, {}, [&](void*) {
        ++runs;
        return ACLNN_SUCCESS;
    });
    OK(aclSetAclOpExecutorRepeatable(executor));
    OK(Thing(nullptr, 0, executor));
    OK(Thing(nullptr, 0, executor));
    OK(aclrtSynchronizeStream(nullptr));
    OK(Thing(nullptr, 0, executor));
    OK(aclDestroyAclOpExecutor(executor));
    OK(aclrtSynchronizeStream(nullptr));
    TRUE(runs == 3);
    REFUSED(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_PARAM_INVALID,
            "aclSetAclOpExecutorRepeatable: executor names executor #2, which is gone; the second phase uses it up");
    REFUSED(aclSetAclOpExecutorRepeatable(nullptr), ACLNN_ERR_INNER_NULLPTR,
            "aclSetAclOpExecutorRepeatable: executor is null");
    End();
}

CASE(executors_belong_to_their_operator)
{
    Begin();
    aclOpExecutor* const executor = New(0);
    REFUSED(RunExecutor("aclnnOther", nullptr, 0, executor, nullptr), ACLNN_ERR_PARAM_INVALID,
            "aclnnOther: executor #2 is one of aclnnThing");
    OK(aclDestroyAclOpExecutor(executor));
    REFUSED(aclDestroyAclOpExecutor(executor), ACLNN_ERR_PARAM_INVALID,
            "aclDestroyAclOpExecutor: executor names executor #2, which is gone; the second phase uses it up");
    REFUSED(aclDestroyAclOpExecutor(nullptr), ACLNN_ERR_INNER_NULLPTR, "aclDestroyAclOpExecutor: executor is null");
    End();
}

CASE(executors_need_a_device)
{
    OK(aclInit(nullptr));
    TRUE(NewExecutor("aclnnThing", 0, {}, kNothing) == nullptr);
    TRUE(Message() == "aclnnThing: this thread has no device; call aclrtSetDevice or aclrtSetCurrentContext first");
    OK(aclFinalize());
    TRUE(NewExecutor("aclnnThing", 0, {}, kNothing) == nullptr);
    TRUE(Message() == "aclnnThing: the ACL is not initialised; call aclInit first");
}

CASE(workspaces)
{
    Begin();
    void* const workspace = Device(1000);
    uint8_t host[1000] = {};
    aclOpExecutor* const executor = New(1000);
    REFUSED(Thing(workspace, 999, executor), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: workspaceSize is 999, the first phase asked for 1000");
    REFUSED(Thing(nullptr, 1000, executor), ACLNN_ERR_PARAM_NULLPTR,
            "aclnnThing: workspace is null, the first phase asked for 1000 bytes");
    REFUSED(Thing(host, 1000, executor), ACLNN_ERR_PARAM_INVALID, "aclnnThing: workspace is no device memory: *");
    REFUSED(Thing(workspace, 1001, executor), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: workspace covers 1001 bytes from byte 0 of device memory #2, which has 1000");
    OK(aclrtFree(workspace));
    REFUSED(Thing(workspace, 1000, executor), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: workspace is in device memory #2, which was freed");
    void* const large = Device(2000);
    REFUSED(Thing(Bytes(large) + 32, 1000, executor), ACLNN_ERR_PARAM_INVALID, "aclnnThing: workspace is 0x*");
    OK(Thing(Bytes(large) + 64, 1000, executor));
    OK(aclrtFree(large));
    REFUSED(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
            "aclnnThing: workspace is in device memory #4, which was freed");
    OK(Thing(nullptr, 0, New(0)));
    OK(aclrtSynchronizeStream(nullptr));
    End();
}

CASE(streams_of_executors)
{
    Begin();
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    aclOpExecutor* const executor = New(0);
    OK(aclrtSetDevice(1));
    REFUSED(Thing(nullptr, 0, executor, stream), ACLNN_ERR_RUNTIME_ERROR,
            "aclnnThing: stream #2 belongs to context #1 on device 0, the thread's context is #4 on device 1");
    REFUSED(Thing(nullptr, 0, executor), ACLNN_ERR_RUNTIME_ERROR,
            "aclnnThing: stream is on device 1, the first phase ran on device 0");
    OK(aclrtSetDevice(0));
    OK(aclrtDestroyStream(stream));
    REFUSED(Thing(nullptr, 0, executor, stream), ACLNN_ERR_RUNTIME_ERROR,
            "aclnnThing: stream names stream #2, which is gone");
    OK(Thing(nullptr, 0, executor));
    OK(aclrtSynchronizeStream(nullptr));
    OK(aclrtResetDevice(1));
    OK(aclrtResetDevice(0));
    End();
}

CASE(extents_live_until_the_work_ran)
{
    Begin();
    void* const data = Device(100);
    bool ran = false;
    const Work mark = [&](void*) {
        ran = true;
        return ACLNN_SUCCESS;
    };
    REFUSED(Thing(nullptr, 0, New(0, {{"x", data, 101}})), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: x covers 101 bytes from byte 0 of device memory #2, which has 100");
    REFUSED(Thing(nullptr, 0, New(0, {{"x", nullptr, 4}})), ACLNN_ERR_PARAM_INVALID, "aclnnThing: x is null");
    OK(Thing(nullptr, 0, New(0, {{"x", data, 100}, {"empty", nullptr, 0}}, mark)));
    OK(aclrtFree(data));
    REFUSED(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
            "aclnnThing: x is in device memory #2, which was freed");
    TRUE(!ran);
    REFUSED(Thing(nullptr, 0, New(0, {{"x", data, 100}}, mark)), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: x is in device memory #2, which was freed");
    OK(aclrtSetDevice(1));
    void* const there = Device(8);
    OK(aclrtSetDevice(0));
    REFUSED(Thing(nullptr, 0, New(0, {{"x", there, 8}}, mark)), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: x is in device memory #8 on device 1, the first phase ran on device 0");
    OK(aclrtFree(there));
    TRUE(!ran);
    REFUSED(aclFinalize(), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED, "aclFinalize: 4 problems*");
}

CASE(tensors_live_until_the_second_phase)
{
    Begin();
    const int64_t two = 2;
    void* const data = Device(8);
    aclTensor* const tensor = aclCreateTensor(&two, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &two, 1, data);
    aclOpExecutor* const first = New(0, {{"x", data, 8, tensor}});
    REFUSED(aclSetRawTensorAddr(tensor, data), ACLNN_ERR_PARAM_INVALID,
            "aclSetRawTensorAddr: tensor is x of aclnnThing, whose second phase is still to come");
    OK(Thing(nullptr, 0, first));
    OK(aclSetRawTensorAddr(tensor, data));
    aclOpExecutor* const second = New(0, {{"x", data, 8, tensor}});
    OK(aclDestroyTensor(tensor));
    REFUSED(Thing(nullptr, 0, second), ACLNN_ERR_PARAM_INVALID,
            "aclnnThing: the tensor of x was destroyed before the second phase");
    OK(aclDestroyAclOpExecutor(second));
    OK(aclrtSynchronizeStream(nullptr));
    OK(aclrtFree(data));
    End();
}

CASE(work_that_writes_too_far)
{
    Begin();
    void* const data = Device(100);
    OK(Thing(nullptr, 0, New(0, {{"y", data, 100}}, [data](void*) {
                 std::memset(data, 0, 101);
                 return ACLNN_SUCCESS;
             })));
    REFUSED(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
            "aclnnThing: found after it ran: device memory #2 (100 bytes) was written at byte 100, behind its end");
    OK(aclrtFree(data));
    End();
}
