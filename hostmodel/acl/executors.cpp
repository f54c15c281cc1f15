// Executors: what the first phase of an operator prepares and the second one queues.
#include "aclnn/aclnn_base.h"
#include "call.h"

namespace moegrad::hostacl {

namespace {

// Memory of a device that a client divides by itself is to be divided at multiples of this.
constexpr uint64_t kWorkspaceAlignment = 64;

int NeedExecutor(const Call& call, const aclOpExecutor* handle, std::shared_ptr<Executor>* executor)
{
    *executor = Now().executors.Find(handle);
    return *executor != nullptr ? ACLNN_SUCCESS
                                : call.Fail(ACLNN_ERR_PARAM_INVALID, "executor ",
                                            DescribeHandle(handle, Kind::kExecutor),
                                            "; the second phase uses it up");
}

// The same for the functions that take nothing but an executor.
int NeedArgumentExecutor(const Call& call, const aclOpExecutor* handle, std::shared_ptr<Executor>* executor)
{
    if (const int error = call.NeedInit()) {
        return error;
    }
    return handle != nullptr ? NeedExecutor(call, handle, executor)
                             : call.Fail(ACLNN_ERR_INNER_NULLPTR, "executor is null");
}

// Why this is not memory of the executor's device; empty if it is.
std::string Trouble(const Executor& executor, const void* address, uint64_t bytes)
{
    const std::string trouble = Now().memory.Trouble(address, bytes, Space::kDevice);
    if (!trouble.empty()) {
        return trouble;
    }
    const Block* const block = Now().memory.Around(address);
    return block->device == executor.device ? ""
                                            : Text("is in ", block->Name(), " on device ", block->device,
                                                   ", the first phase ran on device ", executor.device);
}

int CheckWorkspace(const Call& call, const Executor& executor, const void* workspace, uint64_t bytes)
{
    if (bytes < executor.workspace_bytes) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "workspaceSize is ", bytes, ", the first phase asked for ",
                         executor.workspace_bytes);
    }
    if (workspace == nullptr && executor.workspace_bytes != 0) {
        return call.Fail(ACLNN_ERR_PARAM_NULLPTR, "workspace is null, the first phase asked for ",
                         executor.workspace_bytes, " bytes");
    }
    if (workspace == nullptr || bytes == 0) {
        return ACLNN_SUCCESS;
    }
    const std::string trouble = Trouble(executor, workspace, bytes);
    if (!trouble.empty()) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "workspace ", trouble);
    }
    if (reinterpret_cast<uint64_t>(workspace) % kWorkspaceAlignment != 0) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "workspace is ", workspace, ", expected a multiple of ",
                         kWorkspaceAlignment, " bytes");
    }
    return ACLNN_SUCCESS;
}

int CheckTensors(const Call& call, const Executor& executor)
{
    for (size_t i = 0; i < executor.extents.size(); ++i) {
        const Extent& extent = executor.extents[i];
        if (executor.tensors[i] != Now().tensors.NumberOf(extent.tensor)) {
            return call.Fail(ACLNN_ERR_PARAM_INVALID, "the tensor of ", extent.name,
                             " was destroyed before the second phase");
        }
    }
    return ACLNN_SUCCESS;
}

int CheckExtents(const Call& call, const Executor& executor, int code)
{
    for (const Extent& extent : executor.extents) {
        const std::string trouble = extent.bytes == 0 ? "" : Trouble(executor, extent.address, extent.bytes);
        if (!trouble.empty()) {
            return call.Fail(code, extent.name, " ", trouble);
        }
    }
    return ACLNN_SUCCESS;
}

// A device reports a bad address in a kernel, and a kernel that went wrong, as an exception of the vector core.
constexpr int kDeviceException = ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;

int Run(const Executor& executor, void* workspace)
{
    const Call call(executor.api);
    if (const int error = CheckExtents(call, executor, kDeviceException)) {
        return error;
    }
    const std::string trouble =
        executor.workspace_bytes == 0 ? "" : Trouble(executor, workspace, executor.workspace_bytes);
    if (!trouble.empty()) {
        return call.Fail(kDeviceException, "workspace ", trouble);
    }
    const std::string earlier = TakeRecentError();
    if (const aclnnStatus status = executor.work(workspace)) {
        const std::string text = TakeRecentError();
        return text.empty() ? call.Fail(status, "failed with code ", status) : hostacl::Fail(status, text);
    }
    SetRecentError(earlier);
    const std::string damage = CheckMemory();
    return damage.empty() ? ACLNN_SUCCESS : call.Fail(kDeviceException, "found after it ran: ", damage);
}

}  // namespace

aclOpExecutor* NewExecutor(const std::string& api, uint64_t workspace_bytes, std::vector<Extent> extents, Work work)
{
    const Call call(api);
    Context* context;
    if (call.NeedContext(&context)) {
        return nullptr;
    }
    std::vector<uint64_t> tensors;
    for (const Extent& extent : extents) {
        tensors.push_back(Now().tensors.NumberOf(extent.tensor));
    }
    Executor made{NextNumber(), api, context->device, workspace_bytes, std::move(extents), std::move(tensors),
                  std::move(work)};
    return static_cast<aclOpExecutor*>(Now().executors.Add(std::make_shared<Executor>(std::move(made))));
}

aclnnStatus RunExecutor(const std::string& api, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                        aclrtStream stream)
{
    const Call call(api);
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (executor == nullptr) {
        return call.Fail(ACLNN_ERR_PARAM_NULLPTR, "executor is null");
    }
    std::shared_ptr<Executor> object;
    if (const int error = NeedExecutor(call, executor, &object)) {
        return error;
    }
    if (object->api != api) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "executor #", object->number, " is one of ", object->api);
    }
    if (const int error = CheckWorkspace(call, *object, workspace, workspace_bytes)) {
        return error;
    }
    std::shared_ptr<Stream> queue;
    if (call.NeedStream(stream, &queue)) {
        return ACLNN_ERR_RUNTIME_ERROR;
    }
    if (queue->device != object->device) {
        return call.Fail(ACLNN_ERR_RUNTIME_ERROR, "stream is on device ", queue->device,
                         ", the first phase ran on device ", object->device);
    }
    if (const int error = CheckTensors(call, *object)) {
        return error;
    }
    if (const int error = CheckExtents(call, *object, ACLNN_ERR_PARAM_INVALID)) {
        return error;
    }
    if (!object->repeatable) {
        Now().executors.Remove(object->number);
    }
    queue->tasks.push_back([object, workspace] { return Run(*object, workspace); });
    return ACLNN_SUCCESS;
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor)
{
    const Call call("aclSetAclOpExecutorRepeatable");
    std::shared_ptr<Executor> object;
    if (const int error = NeedArgumentExecutor(call, executor, &object)) {
        return error;
    }
    object->repeatable = true;
    return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor)
{
    const Call call("aclDestroyAclOpExecutor");
    std::shared_ptr<Executor> object;
    if (const int error = NeedArgumentExecutor(call, executor, &object)) {
        return error;
    }
    Now().executors.Remove(object->number);
    return ACLNN_SUCCESS;
}
