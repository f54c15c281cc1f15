// What a data type inference function reads and sets.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "extended_kernel_context.h"
#include "graph/ge_error_codes.h"

namespace gert {

class InferDataTypeContext : public ExtendedKernelContext {
public:
    // |outputs| has one type for each output of the definition.
    InferDataTypeContext(const ComputeNodeInfo& node, std::vector<ge::DataType>& outputs)
        : ExtendedKernelContext(node), outputs_(&outputs)
    {
    }

    // DT_UNDEFINED for an input that is absent or does not exist.
    ge::DataType GetInputDataType(std::size_t index) const { return TypeOf(node().Input(index)); }
    ge::DataType GetRequiredInputDataType(std::size_t ir_index) const { return TypeOf(node().IrInput(ir_index)); }
    ge::DataType GetOptionalInputDataType(std::size_t ir_index) const { return TypeOf(node().IrInput(ir_index)); }

    ge::graphStatus SetOutputDataType(std::size_t index, ge::DataType type)
    {
        if (index >= outputs_->size()) {
            node().AddProblem("output " + std::to_string(index) + " was set, the operator has " +
                              std::to_string(outputs_->size()));
            return ge::GRAPH_FAILED;
        }
        (*outputs_)[index] = type;
        return ge::GRAPH_SUCCESS;
    }

private:
    static ge::DataType TypeOf(const NodeTensor* tensor)
    {
        return tensor == nullptr ? ge::DT_UNDEFINED : tensor->desc.GetDataType();
    }

    std::vector<ge::DataType>* outputs_;
};

}  // namespace gert
