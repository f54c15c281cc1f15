// Both phases of an operator.
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "call.h"
#include "kernel.h"
#include "moegrad_hostmodel/chip.h"
#include "names.h"
#include "oprun.h"
#include "refusal.h"
#include "tiling_run.h"
#include "view.h"

namespace moegrad::oprun {
namespace {

constexpr uint64_t kWorkspaceAlignment = 512;

uint64_t Align(uint64_t bytes) { return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment; }

// The name of the chip's family, as AddConfig takes it: bins of one family are one compute unit.
std::string ComputeUnit()
{
    const std::string chip = hostmodel::kChipName;
    for (const char* family : {"ascend910b", "ascend950"}) {
        if (chip.rfind(family, 0) == 0) {
            return family;
        }
    }
    return chip;
}

void CheckChip(const ops::OpDef& op)
{
    const std::string wanted = ComputeUnit();
    for (const std::string& soc : op.ai_core().socs()) {
        if (soc == wanted) {
            return;
        }
    }
    throw Refusal(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "no configuration for " + wanted + "; the definition has " +
                                                         (op.ai_core().socs().empty()
                                                              ? "none"
                                                              : Join(op.ai_core().socs(), ", ")));
}

KernelLauncher KernelOf(const ops::OpDef& op, std::size_t column, const std::vector<Argument>& arguments)
{
    const KernelLauncher launcher = FindKernel(op.type(), column);
    if (launcher == nullptr) {
        std::vector<std::string> types;
        for (const Argument& argument : arguments) {
            if (argument.tensor != nullptr) {
                types.push_back(argument.def->name() + " " + NameOf(argument.def->data_types()[column]));
            }
        }
        std::vector<std::string> compiled;
        for (const std::size_t known : KernelColumns(op.type())) {
            compiled.push_back(std::to_string(known));
        }
        throw Refusal(ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
                      "no kernel was compiled for " + Join(types, ", ") + ", combination " + std::to_string(column) +
                          " of the definition; compiled are " + (compiled.empty() ? "none" : Join(compiled, ", ")));
    }
    return launcher;
}

// A strided input and where in the workspace its elements go.
struct Copy {
    std::size_t array;  // of the launch
    View from;
    uint64_t at;
};

// All that the second phase needs; nothing of it belongs to the caller but the memory of the tensors.
struct Plan {
    std::string op_type;
    KernelLauncher launcher = nullptr;
    KernelLaunch launch;
    std::vector<Copy> copies;
    std::vector<hostacl::Extent> extents;
    uint64_t workspace_bytes = 0;
};

void AddTensor(Plan& plan, const Argument& argument, bool output)
{
    KernelArray array;
    array.name = argument.def->name();
    array.output = output;
    array.present = argument.tensor != nullptr;
    if (array.present) {
        View view = ViewOf(*argument.tensor);
        array.data = view.first;
        array.bytes = view.bytes();
        if (array.bytes != 0) {
            plan.extents.push_back(view.extent(array.name.c_str()));
            plan.extents.back().tensor = argument.tensor;
        }
        if (!view.contiguous()) {
            if (output) {
                throw Refusal(ACLNN_ERR_PARAM_INVALID, array.name + ": expected a contiguous output, got strides");
            }
            if (!argument.def->auto_contiguous()) {
                throw Refusal(ACLNN_ERR_INNER, array.name + ": got strides, and the definition lacks AutoContiguous");
            }
            plan.copies.push_back({plan.launch.arrays.size(), std::move(view), 0});
        }
    }
    plan.launch.arrays.push_back(std::move(array));
}

bool AllOutputsEmpty(const KernelLaunch& launch)
{
    for (const KernelArray& array : launch.arrays) {
        if (array.output && array.bytes != 0) {
            return false;
        }
    }
    return true;
}

// The kernel's own workspace comes first, then the copies.
void LayOutWorkspace(Plan& plan)
{
    uint64_t end = Align(plan.launch.workspace_bytes);
    for (Copy& copy : plan.copies) {
        copy.at = end;
        end += Align(copy.from.bytes());
    }
    plan.workspace_bytes = plan.copies.empty() ? plan.launch.workspace_bytes : end;
}

// A destroyed tensor must not be read, not even to say what is wrong with it.
void CheckAlive(const char* what, const std::vector<const aclTensor*>& tensors)
{
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i] != nullptr && !hostacl::IsTensor(tensors[i])) {
            throw Refusal(ACLNN_ERR_PARAM_INVALID, std::string(what) + " " + std::to_string(i) +
                                                       ": expected a tensor that was created and not destroyed");
        }
    }
}

Plan MakePlan(const char* op_type, const std::vector<const aclTensor*>& inputs, const std::vector<Attr>& attrs,
              const std::vector<const aclTensor*>& outputs)
{
    const ops::OpDef& op = DefinitionOf(op_type);
    CheckAlive("input", inputs);
    CheckAlive("output", outputs);
    const std::vector<Argument> in = BindTensors("inputs", op.inputs(), inputs);
    const std::vector<Argument> out = BindTensors("outputs", op.outputs(), outputs);
    std::vector<Argument> all = in;
    all.insert(all.end(), out.begin(), out.end());
    const std::unique_ptr<gert::ComputeNodeInfo> node = NodeOf(op, in, out, attrs);
    const std::size_t column = ColumnOf(all);
    CheckChip(op);

    Plan plan;
    plan.op_type = op.type();
    plan.launcher = KernelOf(op, column, all);
    for (const Argument& argument : in) {
        AddTensor(plan, argument, false);
    }
    for (const Argument& argument : out) {
        AddTensor(plan, argument, true);
    }
    if (AllOutputsEmpty(plan.launch) && !op.ai_core().launches_when_empty()) {
        plan.launcher = nullptr;
        plan.copies.clear();
        return plan;
    }
    TilingResult tiling = RunTiling(op, *node);
    plan.launch.tiling_key = tiling.key;
    plan.launch.block_count = tiling.block_count;
    plan.launch.tiling = std::move(tiling.data);
    plan.launch.workspace_bytes = tiling.workspace_bytes;
    LayOutWorkspace(plan);
    return plan;
}

aclnnStatus Execute(Plan& plan, void* workspace)
{
    for (const Copy& copy : plan.copies) {
        uint8_t* const to = static_cast<uint8_t*>(workspace) + copy.at;
        Gather(copy.from, to);
        plan.launch.arrays[copy.array].data = to;
    }
    if (plan.launcher == nullptr) {
        return ACLNN_SUCCESS;
    }
    const std::string findings = plan.launcher(plan.launch);
    return findings.empty() ? ACLNN_SUCCESS
                            : hostacl::Fail(ACLNN_ERR_RUNTIME_ERROR, plan.op_type + ": " + findings);
}

}  // namespace

aclnnStatus Prepare(const char* op_type, std::vector<const aclTensor*> inputs, std::vector<Attr> attrs,
                    std::vector<const aclTensor*> outputs, uint64_t* workspaceSize, aclOpExecutor** executor)
{
    return Guarded(op_type, [&] {
        if (workspaceSize == nullptr || executor == nullptr) {
            const std::string name = workspaceSize == nullptr ? "workspaceSize" : "executor";
            throw Refusal(ACLNN_ERR_PARAM_NULLPTR, name + ": expected an address, got null");
        }
        auto plan = std::make_shared<Plan>(MakePlan(op_type, inputs, attrs, outputs));
        const uint64_t bytes = plan->workspace_bytes;
        std::vector<hostacl::Extent> extents = plan->extents;
        aclOpExecutor* made = hostacl::NewExecutor(op_type, bytes, std::move(extents),
                                                   [plan](void* workspace) { return Execute(*plan, workspace); });
        if (made == nullptr) {
            const char* why = aclGetRecentErrMsg();
            throw Refusal(ACLNN_ERR_INNER_CREATE_EXECUTOR, why == nullptr ? "no executor" : why, true);
        }
        *workspaceSize = bytes;
        *executor = made;
    });
}

aclnnStatus Run(const char* op_type, void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                aclrtStream stream)
{
    return hostacl::RunExecutor(op_type, workspace, workspaceSize, executor, stream);
}

}  // namespace moegrad::oprun
