#include "tiling_run.h"

#include <cstddef>
#include <exception>
#include <string>

#include "names.h"
#include "refusal.h"

namespace moegrad::oprun {
namespace {

constexpr uint8_t kPoisons[] = {0xA5, 0x5A};
constexpr uint32_t kMaxBlocks = 65535;

[[noreturn]] void Refuse(const std::string& text) { throw Refusal(ACLNN_ERR_INNER_TILING_ERROR, text); }

// What the tiling function put down with SetRecentError; also clears it.
std::string TakeRecentError()
{
    const char* text = aclGetRecentErrMsg();
    return text == nullptr ? "" : text;
}

void Call(ops::TilingFunction function, gert::TilingContext& context, const gert::ComputeNodeInfo& node)
{
    TakeRecentError();
    ge::graphStatus status = ge::GRAPH_FAILED;
    try {
        status = function(&context);
    } catch (const std::exception& error) {
        Refuse(std::string("the tiling function threw: ") + error.what());
    }
    const std::string own_words = TakeRecentError();
    const std::string problems = Join(node.problems(), "; ");
    if (status != ge::GRAPH_SUCCESS && !own_words.empty()) {
        throw Refusal(ACLNN_ERR_INNER_TILING_ERROR, own_words, true);
    }
    if (status != ge::GRAPH_SUCCESS) {
        Refuse("the tiling function failed" + (problems.empty() ? "" : ": " + problems));
    }
    if (!problems.empty()) {
        Refuse("tiling function: " + problems);
    }
}

TilingResult RunOnce(const ops::OpDef& op, const gert::ComputeNodeInfo& node, uint8_t poison)
{
    fe::PlatFormInfos platform;
    gert::TilingContext context(node, &platform, poison);
    Call(op.ai_core().tiling(), context, node);
    if (context.GetBlockDim() == 0 || context.GetBlockDim() > kMaxBlocks) {
        Refuse("block dim: expected 1 to " + std::to_string(kMaxBlocks) + ", got " +
               std::to_string(context.GetBlockDim()));
    }
    if (context.GetTilingKey() == gert::TilingContext::kUnsetTilingKey) {
        Refuse("the tiling key was never set");
    }
    if (context.WorkspaceBytes() == gert::TilingContext::kUnsetWorkspace) {
        Refuse("the size of the workspace was never set");
    }
    context.ClearPaddingOfTilingData();
    const gert::TilingData& raw = *context.GetRawTilingData();
    if (raw.GetDataSize() > raw.GetCapacity()) {
        Refuse("tiling data: " + std::to_string(raw.GetDataSize()) + " bytes do not fit in " +
               std::to_string(raw.GetCapacity()));
    }
    const auto* begin = static_cast<const uint8_t*>(raw.GetData());
    return {context.GetTilingKey(), context.GetBlockDim(), context.WorkspaceBytes(),
            {begin, begin + raw.GetDataSize()}};
}

// Two runs over different poison: a byte that keeps both was never assigned, one that differs depends on such a byte.
void Compare(const TilingResult& a, const TilingResult& b)
{
    const bool same = a.key == b.key && a.block_count == b.block_count && a.workspace_bytes == b.workspace_bytes &&
                      a.data.size() == b.data.size();
    if (!same) {
        Refuse("two runs of the tiling function with equal arguments differ: it reads what it never assigned");
    }
    for (std::size_t at = 0; at < a.data.size(); ++at) {
        if (a.data[at] == b.data[at]) {
            continue;
        }
        const bool unset = a.data[at] == kPoisons[0] && b.data[at] == kPoisons[1];
        Refuse("tiling data: byte " + std::to_string(at) + " of " + std::to_string(a.data.size()) +
               (unset ? " was never assigned" : " depends on what was never assigned"));
    }
}

}  // namespace

TilingResult RunTiling(const ops::OpDef& op, const gert::ComputeNodeInfo& node)
{
    if (op.ai_core().tiling() == nullptr) {
        Refuse("the definition has no tiling function");
    }
    const TilingResult first = RunOnce(op, node, kPoisons[0]);
    Compare(first, RunOnce(op, node, kPoisons[1]));
    return first;
}

}  // namespace moegrad::oprun
