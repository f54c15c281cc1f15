// The moves between global memory and UB: a number of blocks, each with its own place on both sides.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "sync.h"

namespace moegrad::hostmodel {

enum class Fill : uint8_t { kNone, kFirstElement, kValue, kArbitrary };

template <typename T>
constexpr ElementType ElementTypeOf()
{
    if constexpr (std::is_same_v<T, int8_t>) {
        return ElementType::kInt8;
    } else if constexpr (std::is_same_v<T, int16_t>) {
        return ElementType::kInt16;
    } else if constexpr (std::is_same_v<T, int32_t>) {
        return ElementType::kInt32;
    } else if constexpr (kIsHalf<T>) {
        return ElementType::kHalf;
    } else if constexpr (kIsBfloat16<T>) {
        return ElementType::kBfloat16;
    } else if constexpr (std::is_same_v<T, float>) {
        return ElementType::kFloat;
    } else {
        return ElementType::kOther;
    }
}

struct BlockCopy {
    GmPlace gm;
    int64_t gm_step = 0;    // bytes from one block's start to the next
    UbPlace ub_place;
    int64_t ub = 0;
    int64_t ub_step = 0;
    int64_t blocks = 0;
    int64_t bytes = 0;      // of a block, as global memory has it
    int64_t left = 0;       // padding in UB, in bytes
    int64_t footprint = 0;  // of a block in UB: padding, data, dummy up to 32 bytes
    uint32_t width = 1;     // of an element
    Fill fill = Fill::kNone;
    std::array<uint8_t, 8> value{};
    ElementType element = ElementType::kOther;
    AtomicOp atomic = AtomicOp::kNone;
    ElementType atomic_type = ElementType::kNone;

    SpanList UbSpans(int64_t length) const
    {
        SpanList spans;
        for (int64_t i = 0; i < blocks; ++i) {
            spans.Add(static_cast<uint32_t>(ub + i * ub_step), static_cast<uint32_t>(length));
        }
        return spans;
    }
    int64_t UbEnd() const { return ub + (blocks - 1) * ub_step + footprint; }
};

inline bool GmBlocksInRange(Core& core, const Site& site, const BlockCopy& copy, bool write)
{
    for (int64_t i = 0; i < copy.blocks; ++i) {
        if (!GmInRange(core, site, copy.gm.Shifted(i * copy.gm_step), static_cast<uint64_t>(copy.bytes), write)) {
            return false;
        }
    }
    return true;
}

// The range checks that both directions share. Fills in a UB address that is safe to use.
inline bool PrepareCopy(Core& core, const Site& site, BlockCopy& copy, bool write)
{
    if (!TensorAlive(core, site, copy.ub_place, "the local tensor")) {
        return false;
    }
    Aligned(core, site, copy.ub_place, "the local tensor", kBlockBytes);
    copy.ub = copy.ub_place.begin / kBlockBytes * kBlockBytes;
    if (copy.blocks == 0 || copy.bytes == 0) {
        core.Report("copy-zero-length", site, Text("blockCount ", copy.blocks, ", blockLen ", copy.bytes));
        return false;
    }
    return InBounds(core, site, copy.ub_place, "the local tensor", copy.ub, copy.UbEnd()) &&
           GmBlocksInRange(core, site, copy, write);
}

// ---- GM to UB ----

inline void FillPadding(UbMemory& ub, const BlockCopy& copy, int64_t block_begin)
{
    const auto fill = [&](int64_t from, int64_t to, const uint8_t* element) {
        for (int64_t at = from; at < to; ++at) {
            const auto byte = static_cast<uint64_t>(at - from) % copy.width;
            *ub.data(static_cast<uint32_t>(at)) = element == nullptr ? kPoisonByte : element[byte];
        }
    };
    const int64_t data_begin = block_begin + copy.left;
    const int64_t data_end = data_begin + copy.bytes;
    std::array<uint8_t, 8> first{};
    std::memcpy(first.data(), ub.data(static_cast<uint32_t>(data_begin)), copy.width);
    const uint8_t* element = copy.fill == Fill::kFirstElement ? first.data()
                             : copy.fill == Fill::kValue      ? copy.value.data()
                                                              : nullptr;
    fill(block_begin, data_begin, element);
    fill(data_end, block_begin + copy.footprint, element);
}

inline void RunLoad(Core& core, const BlockCopy& copy)
{
    for (int64_t i = 0; i < copy.blocks; ++i) {
        const int64_t begin = copy.ub + i * copy.ub_step;
        std::memcpy(core.ub.data(static_cast<uint32_t>(begin + copy.left)), copy.gm.address() + i * copy.gm_step,
                    static_cast<std::size_t>(copy.bytes));
        if (copy.footprint != copy.bytes) {
            FillPadding(core.ub, copy, begin);
        }
    }
}

inline ByteState PaddingState(Fill fill)
{
    switch (fill) {
        case Fill::kValue: return kInitialised;
        case Fill::kFirstElement: return kDummy;
        default: return kPoison;
    }
}

inline void NoteLoadedStates(Core& core, const BlockCopy& copy)
{
    const GmArray& array = *copy.gm.array;
    for (int64_t i = 0; i < copy.blocks; ++i) {
        const auto begin = static_cast<uint32_t>(copy.ub + i * copy.ub_step);
        if (copy.footprint != copy.bytes) {
            core.ub.SetState({begin, static_cast<uint32_t>(copy.footprint)}, PaddingState(copy.fill));
        }
        uint8_t* data_state = core.ub.state(begin + static_cast<uint32_t>(copy.left));
        if (array.tracked()) {
            std::memcpy(data_state, array.states() + copy.gm.offset + i * copy.gm_step,
                        static_cast<std::size_t>(copy.bytes));
        } else {
            std::memset(data_state, kInitialised, static_cast<std::size_t>(copy.bytes));
        }
    }
}

inline void IssueLoad(const Site& site, BlockCopy copy)
{
    Core& core = Self();
    if (!PrepareCopy(core, site, copy, false)) {
        return;
    }
    const SpanList writes = copy.UbSpans(copy.footprint);
    Issue issue(core, kMte2, site);
    issue.Check({}, writes);
    GmAccess gm(issue, false);
    for (int64_t i = 0; i < copy.blocks; ++i) {
        gm.Read(copy.gm.Shifted(i * copy.gm_step), static_cast<uint64_t>(copy.bytes));
    }
    issue.Note({}, writes);
    NoteLoadedStates(core, copy);
    core.counters.AddTransfer(true, reinterpret_cast<uintptr_t>(copy.gm.address()), static_cast<uint64_t>(copy.bytes),
                              static_cast<uint64_t>(copy.blocks));
    issue.Commit([&core, copy] { RunLoad(core, copy); });
    GiveWay(core);
}

// ---- UB to GM ----

template <typename T>
void AtomicCombine(uint8_t* destination, const uint8_t* source, int64_t bytes, AtomicOp op, bool saturate)
{
    for (int64_t at = 0; at + static_cast<int64_t>(sizeof(T)) <= bytes; at += static_cast<int64_t>(sizeof(T))) {
        T old;
        T update;
        std::memcpy(&old, destination + at, sizeof(T));
        std::memcpy(&update, source + at, sizeof(T));
        const double a = Widen(old);
        const double b = Widen(update);
        const double result = op == AtomicOp::kAdd ? a + b : op == AtomicOp::kMax ? (a > b ? a : b) : (a < b ? a : b);
        const T stored = NarrowTo<T>(result, Rounding::kNearestEven, saturate);
        std::memcpy(destination + at, &stored, sizeof(T));
    }
}

inline void CombineBlock(Core& core, const BlockCopy& copy, uint8_t* to, const uint8_t* from)
{
    const bool saturate = core.saturate;
    switch (copy.atomic_type) {
        case ElementType::kInt8: return AtomicCombine<int8_t>(to, from, copy.bytes, copy.atomic, saturate);
        case ElementType::kInt16: return AtomicCombine<int16_t>(to, from, copy.bytes, copy.atomic, saturate);
        case ElementType::kInt32: return AtomicCombine<int32_t>(to, from, copy.bytes, copy.atomic, saturate);
        case ElementType::kHalf: return AtomicCombine<half>(to, from, copy.bytes, copy.atomic, saturate);
        case ElementType::kBfloat16: return AtomicCombine<bfloat16_t>(to, from, copy.bytes, copy.atomic, saturate);
        default: return AtomicCombine<float>(to, from, copy.bytes, copy.atomic, saturate);
    }
}

inline void RunStore(Core& core, const BlockCopy& copy)
{
    for (int64_t i = 0; i < copy.blocks; ++i) {
        const uint8_t* from = core.ub.data(static_cast<uint32_t>(copy.ub + i * copy.ub_step));
        uint8_t* to = copy.gm.address() + i * copy.gm_step;
        if (copy.atomic == AtomicOp::kNone) {
            std::memcpy(to, from, static_cast<std::size_t>(copy.bytes));
        } else {
            CombineBlock(core, copy, to, from);
        }
    }
}

inline void NoteStoredStates(Core& core, const Site& site, const BlockCopy& copy)
{
    GmArray& array = *copy.gm.array;
    for (int64_t i = 0; i < copy.blocks; ++i) {
        const int64_t offset = copy.gm.offset + i * copy.gm_step;
        uint8_t* states = array.states() + offset;
        const auto bytes = static_cast<std::size_t>(copy.bytes);
        if (copy.atomic != AtomicOp::kNone && states[0] >= kUnwrittenGm) {
            core.Report("atomic-on-unwritten", site,
                        Text("byte ", offset, " of '", array.name(), "' holds nothing yet"));
        }
        if (array.role() == Role::kWorkspace) {
            std::memcpy(states, core.ub.state(static_cast<uint32_t>(copy.ub + i * copy.ub_step)), bytes);
        } else {
            std::memset(states, kInitialised, bytes);
        }
    }
}

inline void IssueStore(const Site& site, BlockCopy copy)
{
    Core& core = Self();
    copy.atomic = core.atomic;
    copy.atomic_type = core.atomic_type;
    if (copy.atomic != AtomicOp::kNone && copy.atomic_type != copy.element) {
        core.Report("atomic-type-mismatch", site, "the atomic is set for another element type than the stored one");
    }
    if (!PrepareCopy(core, site, copy, true)) {
        return;
    }
    const SpanList reads = copy.UbSpans(copy.bytes);
    Issue issue(core, kMte3, site);
    issue.Check(reads, {});
    GmAccess gm(issue, copy.atomic != AtomicOp::kNone);
    for (int64_t i = 0; i < copy.blocks; ++i) {
        gm.Write(copy.gm.Shifted(i * copy.gm_step), static_cast<uint64_t>(copy.bytes));
    }
    issue.Note(reads, {});
    if (copy.gm.array->role() != Role::kWorkspace) {
        CheckObserved(core, site, reads, "stores");
    }
    NoteStoredStates(core, site, copy);
    core.counters.AddTransfer(false, reinterpret_cast<uintptr_t>(copy.gm.address()), static_cast<uint64_t>(copy.bytes),
                              static_cast<uint64_t>(copy.blocks));
    issue.Commit([&core, copy] { RunStore(core, copy); });
    GiveWay(core);
}

}  // namespace moegrad::hostmodel
