// A call as tiling and inference functions see it.
#include <utility>

#include "call.h"
#include "refusal.h"

namespace moegrad::oprun {
namespace {

gert::NodeTensor NodeTensorOf(const Argument& argument)
{
    gert::NodeTensor node;
    node.name = argument.def->name();
    if (argument.tensor == nullptr) {
        return node;
    }
    node.present = true;
    for (const int64_t dim : argument.tensor->view_dims) {
        node.shape.MutableOriginShape().AppendDim(dim);
    }
    // Strided tensors are gathered first: what the kernel gets lies in memory as the view shows it.
    node.shape.MutableStorageShape() = node.shape.GetOriginShape();
    const auto format = static_cast<ge::Format>(argument.tensor->format);
    node.desc = {static_cast<ge::DataType>(argument.tensor->dtype), format, format};
    return node;
}

std::vector<gert::NodeTensor> NodeTensorsOf(const std::vector<Argument>& arguments)
{
    std::vector<gert::NodeTensor> tensors;
    for (const Argument& argument : arguments) {
        tensors.push_back(NodeTensorOf(argument));
    }
    return tensors;
}

gert::AttrValue AttrValueOf(const ops::OpAttrDef& def, const Attr& given)
{
    if (given.index() != def.value().index()) {
        static const char* const kKinds[] = {"a bool", "an int64_t", "a list of int64_t"};
        throw Refusal(ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE, def.name() + ": expected " + kKinds[def.value().index()] +
                                                                ", got " + kKinds[given.index()]);
    }
    if (const bool* value = std::get_if<bool>(&given)) {
        return *value;
    }
    if (const int64_t* value = std::get_if<int64_t>(&given)) {
        return *value;
    }
    const aclIntArray* list = std::get<const aclIntArray*>(given);
    if (list == nullptr && def.required()) {
        throw Refusal(ACLNN_ERR_PARAM_NULLPTR, def.name() + ": expected a list, got null");
    }
    if (list != nullptr && !hostacl::IsIntArray(list)) {
        throw Refusal(ACLNN_ERR_PARAM_INVALID, def.name() + ": expected a list that was created and not destroyed");
    }
    return gert::TypedContinuousVector<int64_t>(list == nullptr ? std::get<std::vector<int64_t>>(def.value())
                                                                : list->values);
}

}  // namespace

std::unique_ptr<gert::ComputeNodeInfo> NodeOf(const ops::OpDef& op, const std::vector<Argument>& inputs,
                                              const std::vector<Argument>& outputs, const std::vector<Attr>& attrs)
{
    if (attrs.size() != op.attrs().size()) {
        throw Refusal(ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE, "expected " + std::to_string(op.attrs().size()) +
                                                                " attributes, got " + std::to_string(attrs.size()));
    }
    std::vector<gert::AttrValue> values;
    for (std::size_t i = 0; i < attrs.size(); ++i) {
        values.push_back(AttrValueOf(op.attrs()[i], attrs[i]));
    }
    return std::make_unique<gert::ComputeNodeInfo>(op.type(), NodeTensorsOf(inputs), NodeTensorsOf(outputs),
                                                   std::move(values));
}

}  // namespace moegrad::oprun
