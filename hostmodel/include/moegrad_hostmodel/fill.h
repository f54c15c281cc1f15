// Filling and moving inside UB: Duplicate, Copy, Brcb, DataCopy between local tensors, Gather.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "arithmetic.h"

namespace moegrad::hostmodel {

template <typename T>
inline constexpr bool kSixteenOrThirtyTwo = sizeof(T) == 2 || sizeof(T) == 4;
template <typename T>
inline constexpr bool kFillable = kOneOf<T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float> ||
                                  (kIs3510 && kOneOf<T, int8_t, uint8_t, int64_t, uint64_t>);

template <typename T>
auto FillLane(T value)
{
    return [value](Core& core, int64_t to, const std::array<int64_t, 0>&) { StoreElement<T>(core, to, value); };
}

template <typename T>
auto CopyLane()
{
    return [](Core& core, int64_t to, const std::array<int64_t, 1>& from) {
        StoreElement<T>(core, to, LoadElement<T>(core, from[0]));
    };
}

template <typename T>
void DuplicateRepeat(const Where& where, const UbPlace& dst, T value, bool set_mask, const MaskArgument& mask,
                     int64_t repeats, int64_t block_stride, int64_t repeat_stride)
{
    VectorCall call = RepeatCall<T>("Duplicate", where, set_mask, mask, repeats);
    CheckDestinationBlock(call.site, block_stride);
    if (repeat_stride < 0 || repeat_stride > 255) {
        Self().Report("stride-out-of-range", call.site, Text("dstRepStride is ", repeat_stride));
    }
    if (call.lanes.repeats != 0) {
        IssueElementwise<0>(call, RepeatOperand(dst, "dst", sizeof(T), block_stride, repeat_stride), {},
                            FillLane<T>(value));
    }
}

template <typename T>
void CopyRepeat(const Where& where, const UbPlace& dst, const UbPlace& src, bool set_mask, const MaskArgument& mask,
                int64_t repeats, const AscendC::CopyRepeatParams& p)
{
    VectorCall call = RepeatCall<T>("Copy", where, set_mask, mask, repeats);
    for (const auto& field : {p.dstRepeatSize, p.srcRepeatSize}) {
        CheckStrides(call.site, field, 4095);
    }
    if (call.lanes.repeats != 0) {
        IssueElementwise<1>(call, RepeatOperand(dst, "dst", sizeof(T), p.dstStride, p.dstRepeatSize),
                            {RepeatOperand(src, "src", sizeof(T), p.srcStride, p.srcRepeatSize)}, CopyLane<T>());
    }
}

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int64_t count, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kFillable<T>, "Duplicate");
    using namespace moegrad::hostmodel;
    VectorCall call = CountCall<T>("Duplicate", where, count);
    if (call.lanes.repeats != 0) {
        IssueElementwise<0>(call, CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T)), {},
                            FillLane<T>(scalarValue));
    }
}

template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const uint64_t mask, const int64_t repeatTime,
               const int64_t dstBlockStride, const int64_t dstRepeatStride, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kFillable<T>, "Duplicate");
    using namespace moegrad::hostmodel;
    DuplicateRepeat<T>(where, PlaceOf(dst), scalarValue, isSetMask, mask, repeatTime, dstBlockStride, dstRepeatStride);
}

template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const uint64_t mask[], const int64_t repeatTime,
               const int64_t dstBlockStride, const int64_t dstRepeatStride, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kFillable<T>, "Duplicate");
    using namespace moegrad::hostmodel;
    DuplicateRepeat<T>(where, PlaceOf(dst), scalarValue, isSetMask, mask, repeatTime, dstBlockStride, dstRepeatStride);
}

template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask, const int64_t repeatTime,
          const CopyRepeatParams& repeatParams, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kSixteenOrThirtyTwo<T>, "Copy");
    using namespace moegrad::hostmodel;
    CopyRepeat<T>(where, PlaceOf(dst), PlaceOf(src), isSetMask, mask, repeatTime, repeatParams);
}

template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], const int64_t repeatTime,
          const CopyRepeatParams& repeatParams, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kSixteenOrThirtyTwo<T>, "Copy");
    using namespace moegrad::hostmodel;
    CopyRepeat<T>(where, PlaceOf(dst), PlaceOf(src), isSetMask, mask, repeatTime, repeatParams);
}

#if __NPU_ARCH__ == 3510
template <typename T>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    UnaryCount<T>("Copy", where, PlaceOf(dst), PlaceOf(src), count, CopyLane<T>());
}
#endif

// UB to UB, on the vector pipe; like every count of DataCopy it is cut to 32 bytes.
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    constexpr int64_t per_block = kBlockBytes / sizeof(T);
    const Site site{"DataCopy", where};
    if (count % per_block != 0) {
        Self().Report("copy-count-truncated", site,
                      Text(count, " elements; only ", count / per_block * per_block, " move"));
    }
    VectorCall call;
    call.site = site;
    if (CountOk(Self(), site, count / per_block * per_block)) {
        call.lanes = CountLanes(count / per_block * per_block, sizeof(T));
        IssueElementwise<1>(call, CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T)),
                            {CountOperand(PlaceOf(src), "src", sizeof(T), sizeof(T))}, CopyLane<T>());
    }
}

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    VectorCall call;
    call.site = {"DataCopy", where};
    constexpr uint32_t per_block = kBlockBytes / sizeof(T);
    // One repeat per block of the copy: its lanes are the block's elements.
    call.lanes.per_repeat = per_block * static_cast<uint32_t>(params.blockLen);
    call.lanes.repeats = params.blockCount;
    call.lanes.total = int64_t{call.lanes.per_repeat} * call.lanes.repeats;
    const int64_t length = params.blockLen;
    if (call.lanes.total == 0) {
        Self().Report("copy-zero-length", call.site, "nothing to copy");
        return;
    }
    IssueElementwise<1>(call, RepeatOperand(PlaceOf(dst), "dst", sizeof(T), 1, length + int64_t{params.dstGap}),
                        {RepeatOperand(PlaceOf(src), "src", sizeof(T), 1, length + int64_t{params.srcGap})},
                        CopyLane<T>());
}

// Each of 8 consecutive elements of a repeat fills one 32-byte block.
template <typename T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t repeatTime,
          const BrcbRepeatParams& repeatParams, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kSixteenOrThirtyTwo<T>, "Brcb");
    using namespace moegrad::hostmodel;
    VectorCall call;
    call.site = {"Brcb", where};
    CheckDestinationBlock(call.site, repeatParams.dstBlkStride.wide());
    if (!RepeatOk(Self(), call.site, repeatTime)) {
        return;
    }
    constexpr uint32_t per_block = kBlockBytes / sizeof(T);
    // One lane for each element written; its source is the element that owns the block.
    call.lanes.per_repeat = 8 * per_block;
    call.lanes.repeats = static_cast<uint32_t>(repeatTime);
    call.lanes.total = int64_t{call.lanes.per_repeat} * call.lanes.repeats;
    Operand source = RepeatOperand(PlaceOf(src), "src", sizeof(T), 0, 0);
    source.repeat_step = 8 * sizeof(T);
    source.broadcast = true;
    IssueElementwise<1>(call, RepeatOperand(PlaceOf(dst), "dst", sizeof(T), repeatParams.dstBlkStride,
                                            repeatParams.dstRepStride),
                        {source}, CopyLane<T>());
}

// dst[i] = first + i * step.
template <typename T>
void ArithProgression(const LocalTensor<T>& dst, const T firstValue, const T diffValue, const int32_t count, MGH_HERE)
{
    MGH_REQUIRE_DTYPE((moegrad::hostmodel::kOneOf<T, int16_t, int32_t, half, float>), "ArithProgression");
    using namespace moegrad::hostmodel;
    VectorCall call = CountCall<T>("ArithProgression", where, count);
    if (call.lanes.repeats != 0) {
        const int64_t begin = PlaceOf(dst).begin;
        IssueElementwise<0>(call, CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T)), {},
                            [=](Core& core, int64_t to, const std::array<int64_t, 0>&) {
                                const auto i = static_cast<double>((to - begin) / static_cast<int64_t>(sizeof(T)));
                                const double value = Widen(firstValue) + i * Widen(diffValue);
                                StoreElement<T>(core, to, NarrowTo<T>(value, Rounding::kNearestEven, core.saturate));
                            });
    }
}

template <typename T>
void CreateVecIndex(const LocalTensor<T>& dst, const T& firstValue, const uint32_t count, MGH_HERE)
{
    ArithProgression(dst, firstValue, static_cast<T>(1), static_cast<int32_t>(count), where);
}

}  // namespace AscendC
