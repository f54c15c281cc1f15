// An operator whose attribute chooses what its tiling function does wrong.
#include "faults.h"
#include "register/op_def_registry.h"

#include "../../../../hostmodel/acl/objects.h"
#include "../op_kernel/careless_tiling.h"

#include <stdexcept>

namespace {

struct Wider {
    int64_t words[4];
};
struct Huge {
    uint8_t bytes[20000];
};

ge::graphStatus Tiling(gert::TilingContext* context)
{
    const int64_t fault = *context->GetAttrs()->GetInt(0);
    auto* tiling = context->GetTilingData<CarelessTiling>();
    if (fault == DEPENDENT_FIELD) {
        tiling->spare = tiling->spare == 0x5A5A5A5A ? 1 : 2;
    } else if (fault != UNSET_FIELD) {
        tiling->spare = 0;
    }
    if (fault != UNSET_BYTE) {
        tiling->flag = 0;
    }
    tiling->elements = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    context->SetTilingKey(fault == STORE_PAST_END ? 7 : fault == LEAVE_UNWRITTEN ? 8 : fault == HANG ? 9 : 1);
    context->SetBlockDim(fault == NO_BLOCKS ? 0 : fault == TOO_MANY_BLOCKS ? 65536 : 1);
    std::size_t* workspace = context->GetWorkspaceSizes(fault == TWO_WORKSPACES ? 2 : 1);
    if (workspace != nullptr && fault != UNSET_WORKSPACE) {
        *workspace = 0;
    }
    switch (fault) {
        case NO_KEY: context->SetTilingKey(gert::TilingContext::kUnsetTilingKey); break;
        case TWO_STRUCTS: context->GetTilingData<Wider>(); tiling->elements = 4; break;
        case HUGE_STRUCT: return context->GetTilingData<Huge>() == nullptr ? ge::GRAPH_FAILED : ge::GRAPH_SUCCESS;
        case WRONG_ATTR: return context->GetAttrs()->GetInt(9) == nullptr ? ge::GRAPH_FAILED : ge::GRAPH_SUCCESS;
        case WRONG_ATTR_TYPE: context->GetAttrs()->GetBool(0); break;
        case WRONG_INPUT: context->GetInputShape(5); break;
        case WRONG_OUTPUT: context->GetOutputShape(1); break;
        case PLACE_AFTER_ABSENT: context->GetInputDesc(2); break;
        case SILENT: return ge::GRAPH_FAILED;
        case SPEAKING: moegrad::hostacl::SetRecentError("fault: expected less"); return ge::GRAPH_FAILED;
        case THROWING: throw std::runtime_error("out of cores");
        case RAW_TOO_LARGE: context->GetRawTilingData()->SetDataSize(20000); break;
        default: break;
    }
    return ge::GRAPH_SUCCESS;
}

}  // namespace

namespace ops {

class Careless : public OpDef {
public:
    explicit Careless(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("extra").ParamType(OPTIONAL).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("last").ParamType(OPTIONAL).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("fault").AttrType(REQUIRED).Int();
        this->AICore().SetTiling(Tiling).AddConfig("ascend910b").LaunchWithZeroEleOutputTensors(true);
    }
};

OP_ADD(Careless);

}  // namespace ops
