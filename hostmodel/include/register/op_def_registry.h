// OP_ADD(Class) at namespace level makes an operator known to the process when its library is loaded.
#pragma once

#include "op_def.h"
#include "op_def_factory.h"

#define OP_ADD(Class)                           \
    [[maybe_unused]] static const int g_##Class##_added = \
        ::ops::OpDefFactory::OpDefRegister(#Class, &::ops::CreateOpDef<Class>)
