// Elementwise arithmetic: Add, Sub, Mul, Div, Max, Min, their scalar forms, multiply-adds and easy functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "elementwise.h"

namespace moegrad::hostmodel {

template <typename T, typename... Choices>
inline constexpr bool kOneOf = (std::is_same_v<T, Choices> || ...);

template <typename T>
inline constexpr bool kAddable = kOneOf<T, int16_t, half, int32_t, float> ||
                                 (kIs3510 && kOneOf<T, bfloat16_t, uint16_t, uint32_t, int64_t, uint64_t>);
template <typename T>
inline constexpr bool kScalable = kOneOf<T, int16_t, half, int32_t, float> ||
                                  (kIs3510 && kOneOf<T, bfloat16_t, int64_t, uint64_t>);
template <typename T>
inline constexpr bool kFunctional = kOneOf<T, half, float>;
template <typename T>
inline constexpr bool kMultiplyAdd = kOneOf<T, half, float> || (kIs3510 && kOneOf<T, bfloat16_t>);

#define MGH_REQUIRE_DTYPE(condition, api)                                                                       \
    static_assert(condition, "unsupported-dtype: " api " has no instruction for this element type on this chip"  \
                             " (cast bf16 to float first)")

template <typename T>
VectorCall CountCall(const char* api, const Where& where, int64_t count)
{
    VectorCall call;
    call.site = {api, where};
    call.lanes = CountOk(Self(), call.site, count) ? CountLanes(count, sizeof(T)) : Lanes{};
    LeaveCountCall(Self());
    return call;
}

template <typename T>
VectorCall RepeatCall(const char* api, const Where& where, bool set_mask, const MaskArgument& mask, int64_t repeats)
{
    VectorCall call;
    call.site = {api, where};
    if (!RepeatLanes(Self(), call.site, call.lanes, sizeof(T), set_mask, mask, repeats)) {
        call.lanes.repeats = 0;
    }
    return call;
}

template <typename U>
void CheckStrides(const Site& site, const U& block, int64_t limit)
{
    if (!block.Fits(0, limit)) {
        Self().Report("stride-out-of-range", site, Text("a stride of ", block.wide(), " does not fit its field"));
    }
}

inline void CheckDestinationBlock(const Site& site, int64_t stride)
{
    if (stride == 0) {
        Self().Report("stride-out-of-range", site, "the destination's block stride is 0");
    }
}

template <typename T, typename F>
void BinaryCount(const char* api, const Where& where, const UbPlace& dst, const UbPlace& src0, const UbPlace& src1,
                 int64_t count, F f)
{
    VectorCall call = CountCall<T>(api, where, count);
    if (call.lanes.repeats != 0) {
        constexpr uint32_t w = sizeof(T);
        IssueElementwise<2>(call, CountOperand(dst, "dst", w, w),
                            {CountOperand(src0, "src0", w, w), CountOperand(src1, "src1", w, w)},
                            BinaryLane<T>(Self().saturate, f));
    }
}

template <typename T, typename F>
void BinaryRepeat(const char* api, const Where& where, const UbPlace& dst, const UbPlace& src0, const UbPlace& src1,
                  bool set_mask, const MaskArgument& mask, int64_t repeats, const AscendC::BinaryRepeatParams& p, F f)
{
    VectorCall call = RepeatCall<T>(api, where, set_mask, mask, repeats);
    call.accumulates = p.dstRepStride.wide() == 0 || p.src1RepStride.wide() == 0;
    for (const auto& field : {p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,
                              p.src1RepStride}) {
        CheckStrides(call.site, field, 255);
    }
    CheckDestinationBlock(call.site, p.dstBlkStride.wide());
    if (call.lanes.repeats != 0) {
        constexpr uint32_t w = sizeof(T);
        IssueElementwise<2>(call, RepeatOperand(dst, "dst", w, p.dstBlkStride, p.dstRepStride),
                            {RepeatOperand(src0, "src0", w, p.src0BlkStride, p.src0RepStride),
                             RepeatOperand(src1, "src1", w, p.src1BlkStride, p.src1RepStride)},
                            BinaryLane<T>(Self().saturate, f));
    }
}

template <typename T, typename Lane>
void UnaryCount(const char* api, const Where& where, const UbPlace& dst, const UbPlace& src, int64_t count, Lane lane)
{
    VectorCall call = CountCall<T>(api, where, count);
    if (call.lanes.repeats != 0) {
        constexpr uint32_t w = sizeof(T);
        IssueElementwise<1>(call, CountOperand(dst, "dst", w, w), {CountOperand(src, "src", w, w)}, lane);
    }
}

inline void CheckUnaryStrides(const Site& site, const AscendC::UnaryRepeatParams& p)
{
    CheckStrides(site, p.dstBlkStride, 65535);
    CheckStrides(site, p.srcBlkStride, 65535);
    CheckStrides(site, p.dstRepStride, 255);
    CheckStrides(site, p.srcRepStride, 255);
    CheckDestinationBlock(site, p.dstBlkStride.wide());
}

template <typename T, typename Lane>
void UnaryRepeat(const char* api, const Where& where, const UbPlace& dst, const UbPlace& src, bool set_mask,
                 const MaskArgument& mask, int64_t repeats, const AscendC::UnaryRepeatParams& p, Lane lane)
{
    VectorCall call = RepeatCall<T>(api, where, set_mask, mask, repeats);
    CheckUnaryStrides(call.site, p);
    if (call.lanes.repeats != 0) {
        constexpr uint32_t w = sizeof(T);
        IssueElementwise<1>(call, RepeatOperand(dst, "dst", w, p.dstBlkStride, p.dstRepStride),
                            {RepeatOperand(src, "src", w, p.srcBlkStride, p.srcRepStride)}, lane);
    }
}

struct AddOp {
    template <typename T>
    auto operator()(T a, T b) const { return static_cast<T>(a + b); }
};
struct SubOp {
    template <typename T>
    auto operator()(T a, T b) const { return static_cast<T>(a - b); }
};
struct MulOp {
    template <typename T>
    auto operator()(T a, T b) const { return static_cast<T>(a * b); }
};
struct DivOp {
    template <typename T>
    auto operator()(T a, T b) const { return static_cast<T>(a / b); }
};
struct MaxOp {
    template <typename T>
    auto operator()(T a, T b) const { return a > b || a != a ? a : b; }
};
struct MinOp {
    template <typename T>
    auto operator()(T a, T b) const { return a < b || a != a ? a : b; }
};

}  // namespace moegrad::hostmodel

namespace AscendC {

// The count form and the two repeat forms of a binary instruction.
#define MGH_BINARY(Name, Trait, Functor)                                                                              \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const int64_t count, \
              MGH_HERE)                                                                                               \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Trait, #Name);                                                                              \
        using namespace moegrad::hostmodel;                                                                           \
        BinaryCount<T>(#Name, where, PlaceOf(dst), PlaceOf(src0), PlaceOf(src1), count, Functor{});                   \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,                      \
              const uint64_t mask, const int64_t repeatTime, const BinaryRepeatParams& repeatParams, MGH_HERE)        \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Trait, #Name);                                                                              \
        using namespace moegrad::hostmodel;                                                                           \
        BinaryRepeat<T>(#Name, where, PlaceOf(dst), PlaceOf(src0), PlaceOf(src1), isSetMask, mask, repeatTime,        \
                        repeatParams, Functor{});                                                                     \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const uint64_t mask[], \
              const int64_t repeatTime, const BinaryRepeatParams& repeatParams, MGH_HERE)                             \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Trait, #Name);                                                                              \
        using namespace moegrad::hostmodel;                                                                           \
        BinaryRepeat<T>(#Name, where, PlaceOf(dst), PlaceOf(src0), PlaceOf(src1), isSetMask, mask,                    \
                        repeatTime, repeatParams, Functor{});                     \
    }

MGH_BINARY(Add, moegrad::hostmodel::kAddable<T>, AddOp)
MGH_BINARY(Sub, moegrad::hostmodel::kAddable<T>, SubOp)
MGH_BINARY(Mul, moegrad::hostmodel::kAddable<T>, MulOp)
MGH_BINARY(Div, moegrad::hostmodel::kFunctional<T>, DivOp)
MGH_BINARY(Max, moegrad::hostmodel::kAddable<T>, MaxOp)
MGH_BINARY(Min, moegrad::hostmodel::kAddable<T>, MinOp)

// The same for an instruction with a scalar operand, whose type must equal T.
#define MGH_SCALAR(Name, Functor)                                                                                     \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int64_t count,        \
              MGH_HERE)                                                                                               \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kScalable<T>, #Name);                                                   \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryCount<T>(#Name, where, PlaceOf(dst), PlaceOf(src), count,                                                \
                      ScalarLane<T>(Self().saturate, Functor{}, scalarValue));                        \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const uint64_t mask,        \
              const int64_t repeatTime, const UnaryRepeatParams& repeatParams, MGH_HERE)                              \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kScalable<T>, #Name);                                                   \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryRepeat<T>(#Name, where, PlaceOf(dst), PlaceOf(src), isSetMask, mask, repeatTime, repeatParams,           \
                       ScalarLane<T>(Self().saturate, Functor{}, scalarValue));                       \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const uint64_t mask[],      \
              const int64_t repeatTime, const UnaryRepeatParams& repeatParams, MGH_HERE)                              \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kScalable<T>, #Name);                                                   \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryRepeat<T>(#Name, where, PlaceOf(dst), PlaceOf(src), isSetMask, mask,       \
                       repeatTime, repeatParams,                                                                      \
                       ScalarLane<T>(Self().saturate, Functor{}, scalarValue));                       \
    }

MGH_SCALAR(Adds, moegrad::hostmodel::AddOp)
MGH_SCALAR(Muls, moegrad::hostmodel::MulOp)
MGH_SCALAR(Maxs, moegrad::hostmodel::MaxOp)
MGH_SCALAR(Mins, moegrad::hostmodel::MinOp)

}  // namespace AscendC
