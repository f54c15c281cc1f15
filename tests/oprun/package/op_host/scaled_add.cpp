// z = scale * x + shift (+ y), and twice that where the caller asks for it; `mask` only takes part in the checks.
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

#include "../op_kernel/scaled_add_tiling.h"

namespace {

ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    const gert::Shape* x = context->GetInputShape(0);
    gert::Shape* z = context->GetOutputShape(0);
    gert::Shape* doubled = context->GetOutputShape(1);
    if (x == nullptr || z == nullptr || doubled == nullptr) {
        return ge::GRAPH_FAILED;
    }
    *z = *x;
    *doubled = *x;
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return context->SetOutputDataType(1, context->GetInputDataType(0));
}

ge::graphStatus Tiling(gert::TilingContext* context)
{
    const gert::StorageShape* x = context->GetInputShape(0);
    const gert::StorageShape* y = context->GetOptionalInputShape(1);
    const gert::StorageShape* z = context->GetOutputShape(0);
    const int64_t* scale = context->GetAttrs()->GetInt(0);
    const bool* negate = context->GetAttrs()->GetBool(1);
    const auto* shifts = context->GetAttrs()->GetListInt(2);
    auto* tiling = context->GetTilingData<ScaledAddTiling>();
    if (x == nullptr || z == nullptr || scale == nullptr || negate == nullptr || shifts == nullptr ||
        tiling == nullptr || z->GetStorageShape() != x->GetStorageShape()) {
        return ge::GRAPH_FAILED;
    }
    const int64_t cores = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
    tiling->elements = x->GetStorageShape().GetShapeSize();
    tiling->perCore = (tiling->elements / cores + 1 + 63) / 64 * 64;
    tiling->scale = *scale;
    tiling->negate = *negate ? 1 : 0;
    tiling->shift = 0;
    for (std::size_t i = 0; i < shifts->GetSize(); ++i) {
        tiling->shift += shifts->GetData()[i];
    }
    context->SetBlockDim(static_cast<uint32_t>((tiling->elements + tiling->perCore - 1) / tiling->perCore + 1));
    context->SetTilingKey(y == nullptr ? 1 : 2);
    context->GetWorkspaceSizes(1)[0] = 100;
    return ge::GRAPH_SUCCESS;
}

}  // namespace

namespace ops {

class ScaledAdd : public OpDef {
public:
    explicit ScaledAdd(const char* name) : OpDef(name)
    {
        const std::vector<ge::DataType> types{ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16};
        const std::vector<ge::Format> formats(3, ge::FORMAT_ND);
        this->Input("x").ParamType(REQUIRED).DataType(types).Format(formats).UnknownShapeFormat(formats);
        this->Input("x").AutoContiguous();
        this->Input("y").ParamType(OPTIONAL).DataType(types).Format(formats).AutoContiguous();
        this->Input("mask").ParamType(OPTIONAL).DataType({ge::DT_INT32, ge::DT_INT32, ge::DT_INT32}).Format(formats);
        this->Output("z").ParamType(REQUIRED).DataType(types).Format(formats).UnknownShapeFormat(formats);
        this->Output("doubled").ParamType(OPTIONAL).DataType(types).Format(formats).UnknownShapeFormat(formats);
        this->Attr("scale").AttrType(REQUIRED).Int();
        this->Attr("negate").AttrType(OPTIONAL).Bool(false);
        this->Attr("shifts").AttrType(OPTIONAL).ListInt({3, 4});
        this->SetInferShape(InferShape).SetInferDataType(InferDataType);
        this->AICore().SetTiling(Tiling);
        this->AICore().AddConfig("ascend910b").AddConfig("ascend950");
    }
};

OP_ADD(ScaledAdd);

}  // namespace ops
