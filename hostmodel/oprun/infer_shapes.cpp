// What graph mode would ask of a definition.
#include <exception>
#include <string>
#include <utility>

#include "call.h"
#include "names.h"
#include "oprun.h"
#include "refusal.h"

namespace moegrad::oprun {
namespace {

[[noreturn]] void Refuse(const std::string& text) { throw Refusal(ACLNN_ERR_INNER_INFERSHAPE_ERROR, text); }

template <typename Function, typename Context>
void Call(const char* what, Function function, Context& context, const gert::ComputeNodeInfo& node)
{
    if (function == nullptr) {
        Refuse(std::string("the definition has no ") + what + " function");
    }
    ge::graphStatus status = ge::GRAPH_FAILED;
    try {
        status = function(&context);
    } catch (const std::exception& error) {
        Refuse(std::string("the ") + what + " function threw: " + error.what());
    }
    const std::string problems = Join(node.problems(), "; ");
    if (status != ge::GRAPH_SUCCESS) {
        Refuse(std::string("the ") + what + " function failed" + (problems.empty() ? "" : ": " + problems));
    }
    if (!problems.empty()) {
        Refuse(std::string(what) + " function: " + problems);
    }
}

std::vector<int64_t> DimsOf(const std::string& name, const gert::Shape& shape)
{
    std::vector<int64_t> dims;
    for (std::size_t axis = 0; axis < shape.GetDimNum(); ++axis) {
        dims.push_back(shape.GetDim(axis));
        if (dims.back() == gert::Shape::kInvalidDimValue) {
            Refuse("dimension " + std::to_string(axis) + " of '" + name + "' was never assigned");
        }
    }
    return dims;
}

}  // namespace

aclnnStatus InferShapes(const char* op_type, const std::vector<const aclTensor*>& inputs,
                        const std::vector<Attr>& attrs, std::vector<InferredTensor>* result)
{
    return Guarded(op_type, [&] {
        const ops::OpDef& op = DefinitionOf(op_type);
        const auto node = NodeOf(op, BindTensors("inputs", op.inputs(), inputs), {}, attrs);
        gert::Shape unassigned;
        unassigned.SetDimNum(gert::Shape::kMaxDimNum);
        std::vector<gert::Shape> shapes(op.outputs().size(), unassigned);
        std::vector<ge::DataType> types(op.outputs().size(), ge::DT_UNDEFINED);
        gert::InferShapeContext shape_context(*node, shapes);
        Call("InferShape", op.infer_shape(), shape_context, *node);
        gert::InferDataTypeContext type_context(*node, types);
        Call("InferDataType", op.infer_data_type(), type_context, *node);
        std::vector<InferredTensor> inferred;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            const std::string& name = op.outputs()[i].name();
            if (types[i] == ge::DT_UNDEFINED) {
                Refuse("the type of '" + name + "' was never assigned");
            }
            inferred.push_back({name, DimsOf(name, shapes[i]), static_cast<aclDataType>(types[i])});
        }
        *result = std::move(inferred);
    });
}

}  // namespace moegrad::oprun
