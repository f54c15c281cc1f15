// Which combination of data types and formats a call has.
#include <algorithm>

#include "call.h"
#include "names.h"
#include "refusal.h"

namespace moegrad::oprun {
namespace {

ge::DataType TypeOf(const aclTensor& tensor) { return static_cast<ge::DataType>(tensor.dtype); }
ge::Format FormatOf(const aclTensor& tensor) { return static_cast<ge::Format>(tensor.format); }

// Leaves the columns in which |argument| has |got|. None left: a refusal that names what was possible.
template <typename Value>
void Narrow(std::vector<std::size_t>& columns, const Argument& argument, const char* what,
            const std::vector<Value>& values, Value got)
{
    std::vector<std::size_t> left;
    std::vector<std::string> expected;
    for (const std::size_t column : columns) {
        const std::string name = NameOf(values[column]);
        if (values[column] == got) {
            left.push_back(column);
        } else if (std::find(expected.begin(), expected.end(), name) == expected.end()) {
            expected.push_back(name);
        }
    }
    if (left.empty()) {
        throw Refusal(ACLNN_ERR_PARAM_INVALID, argument.def->name() + ": expected " + what + " " +
                                                   Join(expected, " or ") + ", got " + NameOf(got));
    }
    columns = std::move(left);
}

}  // namespace

std::vector<Argument> BindTensors(const char* what, const std::deque<ops::OpParamDef>& defs,
                                  const std::vector<const aclTensor*>& tensors)
{
    if (tensors.size() != defs.size()) {
        throw Refusal(ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE,
                      std::string(what) + ": expected " + std::to_string(defs.size()) + " tensors, got " +
                          std::to_string(tensors.size()));
    }
    std::vector<Argument> arguments;
    for (std::size_t i = 0; i < defs.size(); ++i) {
        if (tensors[i] == nullptr && defs[i].required()) {
            throw Refusal(ACLNN_ERR_PARAM_NULLPTR, defs[i].name() + ": expected a tensor, got null");
        }
        arguments.push_back({&defs[i], tensors[i]});
    }
    return arguments;
}

std::size_t ColumnOf(const std::vector<Argument>& arguments)
{
    std::vector<std::size_t> columns(arguments.front().def->data_types().size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = i;
    }
    for (const Argument& argument : arguments) {
        if (argument.tensor != nullptr) {
            Narrow(columns, argument, "dtype", argument.def->data_types(), TypeOf(*argument.tensor));
        }
    }
    for (const Argument& argument : arguments) {
        if (argument.tensor != nullptr) {
            Narrow(columns, argument, "format", argument.def->formats(), FormatOf(*argument.tensor));
        }
    }
    return columns.front();
}

}  // namespace moegrad::oprun
