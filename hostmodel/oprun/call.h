// A call held against the definition of its operator.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "oprun.h"
#include "register/op_def_registry.h"

namespace moegrad::oprun {

// The definition of |op_type|, checked. Throws a Refusal: all functions here do.
const ops::OpDef& DefinitionOf(const char* op_type);

// A tensor of a call with its place in the definition; `tensor` is null where the call leaves it out.
struct Argument {
    const ops::OpParamDef* def;
    const aclTensor* tensor;
};

// One argument for each tensor of the definition.
std::vector<Argument> BindTensors(const char* what, const std::deque<ops::OpParamDef>& defs,
                                  const std::vector<const aclTensor*>& tensors);

// The first combination of types and formats that all tensors of the call have.
std::size_t ColumnOf(const std::vector<Argument>& arguments);

// What tiling and inference functions see.
std::unique_ptr<gert::ComputeNodeInfo> NodeOf(const ops::OpDef& op, const std::vector<Argument>& inputs,
                                              const std::vector<Argument>& outputs, const std::vector<Attr>& attrs);

}  // namespace moegrad::oprun
