// What a shape inference function reads and sets.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "extended_kernel_context.h"
#include "graph/ge_error_codes.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
public:
    // |outputs| has one shape for each output of the definition.
    InferShapeContext(const ComputeNodeInfo& node, std::vector<Shape>& outputs)
        : ExtendedKernelContext(node), outputs_(&outputs)
    {
    }

    const Shape* GetInputShape(std::size_t index) const { return ShapeOf(node().Input(index)); }
    const Shape* GetRequiredInputShape(std::size_t ir_index) const { return ShapeOf(node().IrInput(ir_index)); }
    const Shape* GetOptionalInputShape(std::size_t ir_index) const { return ShapeOf(node().IrInput(ir_index)); }

    Shape* GetOutputShape(std::size_t index)
    {
        if (index >= outputs_->size()) {
            node().AddProblem("output " + std::to_string(index) + " was asked for, the operator has " +
                              std::to_string(outputs_->size()));
            return nullptr;
        }
        return &(*outputs_)[index];
    }

private:
    static const Shape* ShapeOf(const NodeTensor* tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->shape.GetOriginShape();
    }

    std::vector<Shape>* outputs_;
};

}  // namespace gert
