// Finding a definition, and the mistakes that the toolkit's code generation would refuse.
#include "call.h"
#include "names.h"
#include "refusal.h"

namespace moegrad::oprun {
namespace {

constexpr aclnnStatus kNoKernel = ACLNN_ERR_INNER_FIND_KERNEL_ERROR;

void CheckParam(const ops::OpParamDef& param, std::size_t columns)
{
    const auto refuse = [&](const char* list, std::size_t length) {
        throw Refusal(kNoKernel, "definition of '" + param.name() + "': " + list + " has " + std::to_string(length) +
                                     " entries, expected " + std::to_string(columns) + ", as other tensors have");
    };
    if (param.data_types().size() != columns) {
        refuse("DataType", param.data_types().size());
    }
    if (param.formats().size() != columns) {
        refuse("Format", param.formats().size());
    }
    if (!param.unknown_shape_formats().empty() && param.unknown_shape_formats().size() != columns) {
        refuse("UnknownShapeFormat", param.unknown_shape_formats().size());
    }
    for (const ge::DataType type : param.data_types()) {
        if (ge::GetSizeByDataType(type) < 0) {
            throw Refusal(kNoKernel, "definition of '" + param.name() + "': DataType has " + NameOf(type));
        }
    }
}

}  // namespace

const ops::OpDef& DefinitionOf(const char* op_type)
{
    const ops::OpDef* op = op_type == nullptr ? nullptr : ops::OpDefFactory::Find(op_type);
    if (op == nullptr) {
        const std::vector<std::string> known = ops::OpDefFactory::GetAllOp();
        throw Refusal(kNoKernel, "no such operator; known: " + (known.empty() ? "none" : Join(known, ", ")));
    }
    if (op->duplicate()) {
        throw Refusal(kNoKernel, "two definitions have this name");
    }
    if (op->inputs().empty() || op->outputs().empty()) {
        throw Refusal(kNoKernel, "the definition has no inputs or no outputs");
    }
    const std::size_t columns = op->inputs().front().data_types().size();
    if (columns == 0) {
        throw Refusal(kNoKernel, "definition of '" + op->inputs().front().name() + "': DataType is empty");
    }
    for (const ops::OpParamDef& param : op->inputs()) {
        CheckParam(param, columns);
    }
    for (const ops::OpParamDef& param : op->outputs()) {
        CheckParam(param, columns);
    }
    for (const ops::OpAttrDef& attr : op->attrs()) {
        if (!attr.required() && !attr.has_default()) {
            throw Refusal(kNoKernel, "definition of '" + attr.name() + "': an optional attribute needs a default");
        }
    }
    return *op;
}

}  // namespace moegrad::oprun
