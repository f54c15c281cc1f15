// The operators of the process. OP_ADD enters them; the operator runner finds them.
#pragma once

#include <string>
#include <vector>

#include "op_def.h"

namespace ops {

class OpDefFactory {
public:
    using Creator = OpDef (*)(const char* type);

    // The result has no meaning.
    static int OpDefRegister(const char* type, Creator creator);

    // Null for an unknown operator.
    static const OpDef* Find(const std::string& type);
    static std::vector<std::string> GetAllOp();
};

template <typename Operator>
OpDef CreateOpDef(const char* type)
{
    return Operator(type);
}

}  // namespace ops
