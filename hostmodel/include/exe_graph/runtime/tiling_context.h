// What a tiling function reads and sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "extended_kernel_context.h"
#include "graph/ge_error_codes.h"
#include "tiling_data.h"

namespace fe {
class PlatFormInfos {};
}  // namespace fe

namespace gert {

class TilingContext : public ExtendedKernelContext {
public:
    static constexpr uint64_t kUnsetTilingKey = std::numeric_limits<uint64_t>::max();
    static constexpr std::size_t kUnsetWorkspace = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t kTilingCapacity = 16384;

    // Every byte of the tiling data is |poison| until the tiling function assigns it.
    TilingContext(const ComputeNodeInfo& node, fe::PlatFormInfos* platform, uint8_t poison)
        : ExtendedKernelContext(node), platform_(platform), data_(kTilingCapacity, poison)
    {
    }

    const StorageShape* GetInputShape(std::size_t index) const { return ShapeOf(node().Input(index)); }
    const StorageShape* GetRequiredInputShape(std::size_t ir_index) const { return ShapeOf(node().IrInput(ir_index)); }
    const StorageShape* GetOptionalInputShape(std::size_t ir_index) const { return ShapeOf(node().IrInput(ir_index)); }
    const StorageShape* GetOutputShape(std::size_t index) const { return ShapeOf(node().Output(index)); }
    fe::PlatFormInfos* GetPlatformInfo() const { return platform_; }

    ge::graphStatus SetTilingKey(uint64_t key) { return Set(tiling_key_, key); }
    uint64_t GetTilingKey() const { return tiling_key_; }
    ge::graphStatus SetBlockDim(uint32_t blocks) { return Set(block_dim_, blocks); }
    ge::graphStatus SetSimdNumBlocks(uint32_t blocks) { return Set(block_dim_, blocks); }
    uint32_t GetBlockDim() const { return block_dim_; }
    ge::graphStatus SetScheduleMode(uint32_t mode) { return Set(schedule_mode_, mode); }
    uint32_t GetScheduleMode() const { return schedule_mode_; }
    ge::graphStatus SetNeedAtomic(bool needed) { return Set(need_atomic_, needed); }
    bool NeedAtomic() const { return need_atomic_; }

    TilingData* GetRawTilingData() { return &data_; }

    template <typename S>
    S* GetTilingData()
    {
        static_assert(std::is_trivially_copyable_v<S> && std::is_standard_layout_v<S>, "tiling data is plain data");
        if (sizeof(S) > data_.GetCapacity()) {
            node().AddProblem("tiling data of " + std::to_string(sizeof(S)) + " bytes do not fit in " +
                              std::to_string(data_.GetCapacity()));
            return nullptr;
        }
        if (typed_bytes_ != 0 && typed_bytes_ != sizeof(S)) {
            node().AddProblem("GetTilingData was called for a struct of " + std::to_string(typed_bytes_) +
                              " bytes, then for one of " + std::to_string(sizeof(S)));
        }
        typed_bytes_ = sizeof(S);
        clear_padding_ = &ClearPadding<S>;
        data_.SetDataSize(sizeof(S));
        return static_cast<S*>(data_.GetData());
    }

    // Zeros in the padding of the struct that GetTilingData was called for.
    void ClearPaddingOfTilingData()
    {
        if (clear_padding_ != nullptr) {
            clear_padding_(data_.GetData());
        }
    }

    // A kernel gets one workspace. Its size is unset until it is assigned.
    std::size_t* GetWorkspaceSizes(std::size_t count)
    {
        if (count > 1) {
            node().AddProblem(std::to_string(count) + " workspaces were asked for, a kernel gets one");
            return nullptr;
        }
        workspace_count_ = count;
        workspace_ = kUnsetWorkspace;
        return &workspace_;
    }
    std::size_t GetWorkspaceNum() const { return workspace_count_; }
    std::size_t WorkspaceBytes() const { return workspace_count_ == 0 ? 0 : workspace_; }

private:
    template <typename T>
    static ge::graphStatus Set(T& field, T value)
    {
        field = value;
        return ge::GRAPH_SUCCESS;
    }

    template <typename S>
    static void ClearPadding([[maybe_unused]] void* data)
    {
#if defined(__GNUC__) && !defined(__clang__)
        __builtin_clear_padding(static_cast<S*>(data));
#endif
    }

    static const StorageShape* ShapeOf(const NodeTensor* tensor)
    {
        return tensor == nullptr ? nullptr : &tensor->shape;
    }

    fe::PlatFormInfos* platform_;
    TilingData data_;
    void (*clear_padding_)(void*) = nullptr;
    std::size_t typed_bytes_ = 0;
    std::size_t workspace_ = kUnsetWorkspace;
    std::size_t workspace_count_ = 0;
    uint64_t tiling_key_ = kUnsetTilingKey;
    uint32_t block_dim_ = 0;
    uint32_t schedule_mode_ = 0;
    bool need_atomic_ = false;
};

}  // namespace gert
