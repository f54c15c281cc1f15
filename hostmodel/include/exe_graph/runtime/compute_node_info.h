// One call of an operator as its tiling and inference functions see it.
//
// Inputs have two numbers: the one in the operator's definition, and the one among those that the call passes. Where an
// optional input is absent they differ; GetInputShape(i) and the like mean the latter.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "graph/types.h"
#include "runtime_attrs.h"
#include "storage_shape.h"

namespace gert {

class CompileTimeTensorDesc {
public:
    CompileTimeTensorDesc() = default;
    CompileTimeTensorDesc(ge::DataType type, ge::Format origin, ge::Format storage)
        : type_(type), origin_(origin), storage_(storage)
    {
    }

    ge::DataType GetDataType() const { return type_; }
    ge::Format GetOriginFormat() const { return origin_; }
    ge::Format GetStorageFormat() const { return storage_; }

private:
    ge::DataType type_ = ge::DT_UNDEFINED;
    ge::Format origin_ = ge::FORMAT_ND;
    ge::Format storage_ = ge::FORMAT_ND;
};

// A tensor of the definition; `present` says whether the call passes it.
struct NodeTensor {
    std::string name;
    bool present = false;
    StorageShape shape;
    CompileTimeTensorDesc desc;
};

class ComputeNodeInfo {
public:
    ComputeNodeInfo(std::string type, std::vector<NodeTensor> inputs, std::vector<NodeTensor> outputs,
                    std::vector<AttrValue> attrs)
        : type_(std::move(type)),
          inputs_(std::move(inputs)),
          outputs_(std::move(outputs)),
          attrs_(std::move(attrs), &problems_)
    {
    }
    ComputeNodeInfo(const ComputeNodeInfo&) = delete;
    ComputeNodeInfo& operator=(const ComputeNodeInfo&) = delete;

    const char* GetNodeType() const { return type_.c_str(); }
    const char* GetNodeName() const { return type_.c_str(); }
    const RuntimeAttrs* GetAttrs() const { return &attrs_; }

    std::size_t GetIrInputsNum() const { return inputs_.size(); }
    std::size_t GetIrOutputsNum() const { return outputs_.size(); }
    std::size_t GetInputsNum() const { return CountPresent(inputs_); }
    std::size_t GetOutputsNum() const { return CountPresent(outputs_); }

    // The input or output at a place of the definition; null if it is absent, and if there is no such place.
    const NodeTensor* IrInput(std::size_t index) const { return AtIr("input", inputs_, index); }

    // The one at a place among those that are there; null past the last.
    const NodeTensor* Input(std::size_t index) const { return AtInstance("input", inputs_, index); }
    const NodeTensor* Output(std::size_t index) const { return AtInstance("output", outputs_, index); }

    // What a device would let pass and what is wrong all the same.
    const std::vector<std::string>& problems() const { return problems_; }
    void AddProblem(std::string text) const { problems_.push_back(std::move(text)); }

private:
    static std::size_t CountPresent(const std::vector<NodeTensor>& tensors)
    {
        std::size_t count = 0;
        for (const NodeTensor& tensor : tensors) {
            count += tensor.present ? 1 : 0;
        }
        return count;
    }

    const NodeTensor* AtIr(const char* what, const std::vector<NodeTensor>& tensors, std::size_t index) const
    {
        if (index >= tensors.size()) {
            AddProblem(std::string(what) + " " + std::to_string(index) + " was asked for, the operator has " +
                       std::to_string(tensors.size()));
            return nullptr;
        }
        return tensors[index].present ? &tensors[index] : nullptr;
    }

    const NodeTensor* AtInstance(const char* what, const std::vector<NodeTensor>& tensors, std::size_t index) const
    {
        const NodeTensor* found = nullptr;
        std::size_t seen = 0;
        for (const NodeTensor& tensor : tensors) {
            if (tensor.present && seen++ == index) {
                found = &tensor;
                break;
            }
        }
        if (found != AtIr(what, tensors, index)) {
            AddProblem(std::string(what) + " " + std::to_string(index) + " was asked for by its place among those " +
                       "present; '" + tensors[index].name + "' has that place in the definition, the call gets " +
                       (found == nullptr ? "nothing" : "'" + found->name + "'") +
                       ", because an optional one before it is absent");
        }
        return found;
    }

    std::string type_;
    std::vector<NodeTensor> inputs_;
    std::vector<NodeTensor> outputs_;
    mutable std::vector<std::string> problems_;
    RuntimeAttrs attrs_;
};

}  // namespace gert
