// What tiling and inference functions have in common.
#pragma once

#include <cstddef>

#include "compute_node_info.h"

namespace gert {

class ExtendedKernelContext {
public:
    explicit ExtendedKernelContext(const ComputeNodeInfo& node) : node_(&node) {}

    const CompileTimeTensorDesc* GetInputDesc(std::size_t index) const { return Desc(node_->Input(index)); }
    const CompileTimeTensorDesc* GetRequiredInputDesc(std::size_t ir_index) const
    {
        return Desc(node_->IrInput(ir_index));
    }
    const CompileTimeTensorDesc* GetOptionalInputDesc(std::size_t ir_index) const
    {
        return Desc(node_->IrInput(ir_index));
    }
    const CompileTimeTensorDesc* GetOutputDesc(std::size_t index) const { return Desc(node_->Output(index)); }

    std::size_t GetComputeNodeInputNum() const { return node_->GetInputsNum(); }
    std::size_t GetComputeNodeOutputNum() const { return node_->GetOutputsNum(); }
    const RuntimeAttrs* GetAttrs() const { return node_->GetAttrs(); }
    const char* GetNodeType() const { return node_->GetNodeType(); }
    const char* GetNodeName() const { return node_->GetNodeName(); }

protected:
    const ComputeNodeInfo& node() const { return *node_; }

private:
    static const CompileTimeTensorDesc* Desc(const NodeTensor* tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->desc;
    }

    const ComputeNodeInfo* node_;
};

}  // namespace gert
