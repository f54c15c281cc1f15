// Running an operator of a custom-operator package: what the toolkit's generated code and its executor do on a device.
//
// An op_api source calls Prepare in its first phase and Run in its second. The operator is the one that OP_ADD entered,
// its kernels are those that kernel_unit.h registered, the chip is the one of -DMOEGRAD_CHIP.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

namespace moegrad::oprun {

// A null array stands for the default of a list attribute.
using Attr = std::variant<bool, int64_t, const aclIntArray*>;

// Tensors and attributes in the order of the operator's definition; null for an absent optional tensor. On success
// *workspaceSize and *executor are set. Else they stay as they were, aclGetRecentErrMsg says why, and the result is
//
//   161001  ACLNN_ERR_PARAM_NULLPTR               a required tensor or list, workspaceSize or executor is null
//   161002  ACLNN_ERR_PARAM_INVALID               a type or format that the definition lacks, a strided output, a
//                                                 destroyed tensor or list
//   561000  ACLNN_ERR_INNER                       a strided input that is not declared AutoContiguous
//   561104  ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE  other tensors or attributes than the definition has
//   561003  ACLNN_ERR_INNER_FIND_KERNEL_ERROR     no such operator, a mistake in its definition, another chip, no
//                                                 compiled kernel
//   561002  ACLNN_ERR_INNER_TILING_ERROR          the tiling function failed, or left something out
//   561101  ACLNN_ERR_INNER_CREATE_EXECUTOR       the host ACL is not initialised, or the thread has no device
//
// If all outputs are empty the tiling function and the kernel do not run, unless the definition asks for it with
// LaunchWithZeroEleOutputTensors(true).
aclnnStatus Prepare(const char* op_type, std::vector<const aclTensor*> inputs, std::vector<Attr> attrs,
                    std::vector<const aclTensor*> outputs, uint64_t* workspaceSize, aclOpExecutor** executor);

// Queues the work. Findings of the host model make it ACLNN_ERR_RUNTIME_ERROR; outputs then stay as they were.
aclnnStatus Run(const char* op_type, void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                aclrtStream stream);

// What graph mode would infer. Of the inputs only shape, type and format count; dimensions may be -1, not known yet.
struct InferredTensor {
    std::string name;
    std::vector<int64_t> dims;
    aclDataType dtype = ACL_DT_UNDEFINED;
};

// One entry in |result| for each output of the definition; untouched unless ACLNN_SUCCESS is returned. Else
// ACLNN_ERR_INNER_INFERSHAPE_ERROR, or the first four of Prepare's codes that apply.
aclnnStatus InferShapes(const char* op_type, const std::vector<const aclTensor*>& inputs,
                        const std::vector<Attr>& attrs, std::vector<InferredTensor>* result);

}  // namespace moegrad::oprun
