// Operators whose definitions have a mistake.
#include "register/op_def_registry.h"

namespace {

ge::graphStatus Nothing(gert::TilingContext*) { return ge::GRAPH_SUCCESS; }

ge::graphStatus LeaveShape(gert::InferShapeContext* context)
{
    context->GetOutputShape(0)->SetDimNum(2);
    context->GetOutputShape(0)->SetDim(0, 3);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus CopyType(gert::InferDataTypeContext* context)
{
    return context->SetOutputDataType(0, context->GetInputDataType(0));
}

ge::graphStatus LeaveType(gert::InferDataTypeContext*) { return ge::GRAPH_SUCCESS; }

ge::graphStatus CopyShape(gert::InferShapeContext* context)
{
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus FailShape(gert::InferShapeContext* context)
{
    return context->GetOptionalInputShape(1) == nullptr ? ge::GRAPH_FAILED : ge::GRAPH_SUCCESS;
}

}  // namespace

namespace ops {

// One float32 tensor in, one out.
class Plain : public OpDef {
public:
    explicit Plain(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().SetTiling(Nothing).AddConfig("ascend910b");
    }
};

class Lopsided : public Plain {
public:
    explicit Lopsided(const char* name) : Plain(name)
    {
        this->Output("z").DataType({ge::DT_FLOAT, ge::DT_FLOAT16});
    }
};
OP_ADD(Lopsided);

class Formatless : public Plain {
public:
    explicit Formatless(const char* name) : Plain(name) { this->Input("x").Format({}); }
};
OP_ADD(Formatless);

class Defaultless : public Plain {
public:
    explicit Defaultless(const char* name) : Plain(name) { this->Attr("k").AttrType(OPTIONAL).Int(); }
};
OP_ADD(Defaultless);

class Foreign : public Plain {
public:
    explicit Foreign(const char* name) : Plain(name) { this->AICore() = OpAICoreDef().AddConfig("ascend310p"); }
};
OP_ADD(Foreign);

class Misfit : public Plain {
public:
    explicit Misfit(const char* name) : Plain(name)
    {
        this->AICore().SetTiling([](gert::TilingContext* context) {
            context->SetBlockDim(1);
            return context->SetTilingKey(1);
        });
        this->SetInferShape(FailShape);
    }
};
OP_ADD(Misfit);

class Tilingless : public Plain {
public:
    explicit Tilingless(const char* name) : Plain(name) { this->AICore().SetTiling(nullptr); }
};
OP_ADD(Tilingless);

class Shapeless : public Plain {
public:
    explicit Shapeless(const char* name) : Plain(name)
    {
        this->SetInferShape(LeaveShape).SetInferDataType(CopyType);
    }
};
OP_ADD(Shapeless);

class Typeless : public Plain {
public:
    explicit Typeless(const char* name) : Plain(name) { this->SetInferShape(CopyShape).SetInferDataType(LeaveType); }
};
OP_ADD(Typeless);

class Untyped : public Plain {
public:
    explicit Untyped(const char* name) : Plain(name) { this->SetInferShape(CopyShape); }
};
OP_ADD(Untyped);

[[maybe_unused]] static const int g_first = OpDefFactory::OpDefRegister("Twice", &CreateOpDef<Plain>);
[[maybe_unused]] static const int g_second = OpDefFactory::OpDefRegister("Twice", &CreateOpDef<Plain>);

}  // namespace ops
