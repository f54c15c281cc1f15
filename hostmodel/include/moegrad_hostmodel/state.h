// Modes that outlive a call: vector masks, atomics on stores, and zero fill of global memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dma.h"
#include "fill.h"

namespace moegrad::hostmodel {

template <typename T>
void StartAtomic(AtomicOp op, const char* api, const Where& where)
{
    static_assert(ElementTypeOf<T>() != ElementType::kOther,
                  "unsupported-dtype: atomic stores take int8, int16, int32, half, bfloat16_t and float");
    Core& core = Self();
    core.atomic = op;
    core.atomic_type = ElementTypeOf<T>();
    core.atomic_site = core.session.sites.Intern({api, where});
}

// Stores one value over a range of global memory from the UB that InitBuffer left free.
template <typename T>
void FillGlobal(const Site& site, const GmPlace& place, uint64_t elements, T value)
{
    Core& core = Self();
    const uint32_t free_bytes = core.ub_used < kUbBytes ? (kUbBytes - core.ub_used) / kBlockBytes * kBlockBytes : 0;
    if (core.ub_used != 0) {
        core.Report("fill-after-init-buffer", site, Text(free_bytes, " bytes of UB are left for it"));
    }
    const uint64_t burst = std::min<uint64_t>(free_bytes, 8160) / sizeof(T);
    if (burst == 0 || elements == 0) {
        return;
    }
    // The same bytes again need no second Duplicate; other bytes must wait for the stores of the first ones.
    const std::string filling(reinterpret_cast<const char*>(&value), sizeof(T));
    const auto [scratch, ready] = core.ScratchBuffer(core.ub_used, core.ub_used + free_bytes, filling);
    const auto tensor = TensorMaker::Make<T>(*scratch, scratch->begin, free_bytes);
    if (!ready) {
        AscendC::Duplicate(tensor, value, static_cast<int64_t>(burst), site.where);
        core.pipes.Wait(kMte3, core.pipes.Set(kV));
    }
    for (uint64_t done = 0; done < elements; done += burst) {
        BlockCopy copy;
        copy.gm = place.Shifted(static_cast<int64_t>(done * sizeof(T)));
        copy.ub_place = PlaceOf(tensor);
        copy.blocks = 1;
        copy.bytes = static_cast<int64_t>(std::min(burst, elements - done) * sizeof(T));
        copy.footprint = copy.bytes;
        copy.width = sizeof(T);
        copy.element = ElementTypeOf<T>();
        IssueStore(site, copy);
    }
}

}  // namespace moegrad::hostmodel

namespace AscendC {

// ---- masks ----

template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    Core& core = Self();
    core.mask_site = core.session.sites.Intern({"SetVectorMask", where});
    if constexpr (mode == MaskMode::COUNTER) {
        core.mask_count = maskLow;
    } else {
        core.mask = {{maskLow, maskHigh}};
    }
}

template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(const int64_t length, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    Core& core = Self();
    core.mask_site = core.session.sites.Intern({"SetVectorMask", where});
    if constexpr (mode == MaskMode::COUNTER) {
        core.mask_count = static_cast<uint64_t>(length);
    } else {
        core.mask = Mask::FirstLanes(static_cast<uint64_t>(length));
    }
}

inline void SetMaskCount(MGH_HERE)
{
    auto& core = moegrad::hostmodel::Self();
    core.mask_mode = MaskMode::COUNTER;
    core.mask_site = core.session.sites.Intern({"SetMaskCount", where});
}
inline void SetMaskNorm() { moegrad::hostmodel::Self().mask_mode = MaskMode::NORMAL; }
inline void ResetMask() { moegrad::hostmodel::Self().mask = {}; }

// ---- atomics ----

template <typename T>
void SetAtomicAdd(MGH_HERE)
{
    moegrad::hostmodel::StartAtomic<T>(moegrad::hostmodel::AtomicOp::kAdd, "SetAtomicAdd", where);
}
template <typename T>
void SetAtomicMax(MGH_HERE)
{
    moegrad::hostmodel::StartAtomic<T>(moegrad::hostmodel::AtomicOp::kMax, "SetAtomicMax", where);
}
template <typename T>
void SetAtomicMin(MGH_HERE)
{
    moegrad::hostmodel::StartAtomic<T>(moegrad::hostmodel::AtomicOp::kMin, "SetAtomicMin", where);
}
inline void SetAtomicNone() { moegrad::hostmodel::Self().atomic = moegrad::hostmodel::AtomicOp::kNone; }
inline void DisableDmaAtomic() { SetAtomicNone(); }

// ---- fill of global memory ----

template <typename T>
void Fill(GlobalTensor<T>& gmWorkspaceAddr, const uint64_t size, const T value, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    static_assert(kSixteenOrThirtyTwo<T> && (kIs3510 || !kIsBfloat16<T>),
                  "unsupported-dtype: Fill takes 16- and 32-bit types, no bf16 on 2201");
    FillGlobal<T>({"Fill", where}, PlaceOf(gmWorkspaceAddr), size, value);
}
template <typename T>
void InitGlobalMemory(GlobalTensor<T>& gmWorkspaceAddr, const uint64_t size, const T value, MGH_HERE)
{
    Fill(gmWorkspaceAddr, size, value, where);
}
template <typename T>
void InitOutput(GlobalTensor<T> gmWorkspaceAddr, uint32_t size, T value = 0, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    FillGlobal<T>({"InitOutput", where}, PlaceOf(gmWorkspaceAddr), size, value);
}

// Control bits: 48 chooses infinity and NaN (1) or saturation (0) for 16-bit results. The others change nothing here.
template <int8_t startBit, int8_t endBit>
void SetCtrlSpr(int64_t value)
{
    if constexpr (startBit <= 48 && endBit >= 48) {
        moegrad::hostmodel::Self().saturate = ((value >> (48 - startBit)) & 1) == 0;
    }
}

template <typename T>
void SetPadValue(T value)
{
    auto& core = moegrad::hostmodel::Self();
    core.pad_value_bits = 0;
    std::memcpy(&core.pad_value_bits, &value, sizeof(T));
}

// ---- event ids without a pipe object ----

inline TEventID FetchEventID(HardEvent event) { return GetTPipePtr()->FetchEventID(event); }

}  // namespace AscendC
