// Cast: every pair of types that the table lists, every rounding mode, both levels; and the scalar conversions.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arithmetic.h"

namespace moegrad::hostmodel {

using AscendC::RoundMode;

constexpr uint32_t Bit(RoundMode mode) { return 1u << static_cast<uint32_t>(mode); }

inline constexpr uint32_t kNoneOnly = Bit(RoundMode::CAST_NONE);
inline constexpr uint32_t kRintToTrunc = Bit(RoundMode::CAST_RINT) | Bit(RoundMode::CAST_FLOOR) |
                                         Bit(RoundMode::CAST_CEIL) | Bit(RoundMode::CAST_ROUND) |
                                         Bit(RoundMode::CAST_TRUNC);
inline constexpr uint32_t kNoneToTrunc = kNoneOnly | kRintToTrunc;
inline constexpr uint32_t kNoneToOdd = kNoneToTrunc | Bit(RoundMode::CAST_ODD);

// The modes that a pair of types has on this chip, as bits; 0: no such Cast.
template <typename To, typename From>
constexpr uint32_t CastModes()
{
    constexpr auto pair = [](auto to, auto from) {
        return std::is_same_v<To, decltype(to)> && std::is_same_v<From, decltype(from)>;
    };
    if constexpr (pair(float{}, half{}) || pair(float{}, bfloat16_t{})) {
        return kNoneOnly;
    } else if constexpr (pair(half{}, float{})) {
        return kNoneToOdd;
    } else if constexpr (pair(bfloat16_t{}, float{}) || pair(int32_t{}, float{}) || pair(float{}, float{})) {
        return kRintToTrunc;
    } else if constexpr (pair(int16_t{}, float{}) || pair(int64_t{}, float{}) || pair(float{}, int64_t{})) {
        return kRintToTrunc;
    } else if constexpr (pair(float{}, int32_t{})) {
        return kIs3510 ? kRintToTrunc : kNoneToTrunc;
    } else if constexpr (pair(int32_t{}, half{}) || pair(int16_t{}, half{}) || pair(int32_t{}, bfloat16_t{})) {
        return kRintToTrunc;
    } else if constexpr (pair(int8_t{}, half{}) || pair(uint8_t{}, half{}) || pair(half{}, int16_t{})) {
        return kNoneToTrunc;
    } else if constexpr (pair(half{}, int32_t{})) {
        return kNoneOnly;  // scaled by SetDeqScale
    } else if constexpr (pair(half{}, int8_t{}) || pair(half{}, uint8_t{}) || pair(float{}, int16_t{}) ||
                         pair(int16_t{}, int32_t{}) || pair(int32_t{}, int64_t{}) || pair(int64_t{}, int32_t{})) {
        return kNoneOnly;
    } else if constexpr (pair(half{}, bfloat16_t{}) || pair(bfloat16_t{}, half{})) {
        return kIs3510 ? kRintToTrunc : 0;
    } else {
        return 0;
    }
}

// NONE is exact where it can be, and rounds to nearest even where it cannot.
constexpr Rounding RoundingOf(RoundMode mode)
{
    switch (mode) {
        case RoundMode::CAST_FLOOR: return Rounding::kFloor;
        case RoundMode::CAST_CEIL: return Rounding::kCeil;
        case RoundMode::CAST_ROUND: return Rounding::kNearestAway;
        case RoundMode::CAST_TRUNC: return Rounding::kTruncate;
        case RoundMode::CAST_ODD: return Rounding::kOdd;
        default: return Rounding::kNearestEven;
    }
}

template <typename To, typename From>
To CastElement(From value, RoundMode mode, bool saturate, float deq_scale)
{
    const Rounding rounding = RoundingOf(mode);
    if constexpr (std::is_same_v<To, float> && (kIsHalf<From> || kIsBfloat16<From>)) {
        return static_cast<float>(Widen(value));  // exact
    } else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
        using Limits = std::numeric_limits<To>;
        return value > Limits::max() ? Limits::max() : value < Limits::min() ? Limits::min() : static_cast<To>(value);
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, float>) {
        return static_cast<float>(RoundToIntegral(value, rounding));
    } else if constexpr (std::is_same_v<To, float> && std::is_integral_v<From>) {
        return FloatFromBits(FloatFormat::Encode(DecomposeInteger(value), rounding, false));
    } else if constexpr (kIsHalf<To> && std::is_same_v<From, int32_t>) {
        return NarrowTo<half>(static_cast<double>(value) * static_cast<double>(deq_scale), rounding, saturate);
    } else {
        return NarrowTo<To>(Widen(value), rounding, saturate);
    }
}

template <typename To, typename From>
auto CastLane(RoundMode mode)
{
    const bool saturate = Self().saturate;
    const float scale = Self().deq_scale;
    return [mode, saturate, scale](Core& core, int64_t to, const std::array<int64_t, 1>& from) {
        StoreElement<To>(core, to, CastElement<To>(LoadElement<From>(core, from[0]), mode, saturate, scale));
    };
}

inline void CheckMode(const Site& site, RoundMode mode, uint32_t allowed)
{
    static constexpr const char* kNames[] = {"CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL",
                                             "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
    if ((allowed & Bit(mode)) == 0) {
        Self().Report("unsupported-round-mode", site,
                      Text(kNames[static_cast<uint32_t>(mode)], " is not in the table for these types on ", kChipName));
    }
}

template <typename T, typename U>
inline constexpr uint32_t kWider = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);

template <typename T, typename U>
void CastRepeat(const Where& where, const UbPlace& dst, const UbPlace& src, RoundMode mode, bool set_mask,
                const MaskArgument& mask, int64_t repeats, const AscendC::UnaryRepeatParams& p)
{
    VectorCall call;
    call.site = {"Cast", where};
    call.overlap_name = sizeof(T) == sizeof(U) ? "partial-overlap" : "cast-overlap";
    CheckMode(call.site, mode, CastModes<T, U>());
    CheckUnaryStrides(call.site, p);
    if (RepeatLanes(Self(), call.site, call.lanes, kWider<T, U>, set_mask, mask, repeats)) {
        IssueElementwise<1>(call, RepeatOperand(dst, "dst", sizeof(T), p.dstBlkStride, p.dstRepStride),
                            {RepeatOperand(src, "src", sizeof(U), p.srcBlkStride, p.srcRepStride)},
                            CastLane<T, U>(mode));
    }
}

}  // namespace moegrad::hostmodel

namespace AscendC {

#define MGH_REQUIRE_CAST(T, U)                                       \
    static_assert(::moegrad::hostmodel::CastModes<T, U>() != 0,      \
                  "unsupported-dtype: Cast has no instruction for this pair of types on this chip (go through float)")

template <typename T, typename U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const int64_t count,
          MGH_HERE)
{
    MGH_REQUIRE_CAST(T, U);
    using namespace moegrad::hostmodel;
    VectorCall call;
    call.site = {"Cast", where};
    call.overlap_name = sizeof(T) == sizeof(U) ? "partial-overlap" : "cast-overlap";
    CheckMode(call.site, roundMode, CastModes<T, U>());
    LeaveCountCall(Self());
    if (CountOk(Self(), call.site, count)) {
        call.lanes = CountLanes(count, kWider<T, U>);
        IssueElementwise<1>(call, CountOperand(PlaceOf(dst), "dst", sizeof(T), kWider<T, U>),
                            {CountOperand(PlaceOf(src), "src", sizeof(U), kWider<T, U>)}, CastLane<T, U>(roundMode));
    }
}

template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint64_t mask,
          const int64_t repeatTime, const UnaryRepeatParams& repeatParams, MGH_HERE)
{
    MGH_REQUIRE_CAST(T, U);
    using namespace moegrad::hostmodel;
    CastRepeat<T, U>(where, PlaceOf(dst), PlaceOf(src), roundMode, isSetMask, mask, repeatTime, repeatParams);
}

template <typename T, typename U, bool isSetMask = true>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint64_t mask[],
          const int64_t repeatTime, const UnaryRepeatParams& repeatParams, MGH_HERE)
{
    MGH_REQUIRE_CAST(T, U);
    using namespace moegrad::hostmodel;
    CastRepeat<T, U>(where, PlaceOf(dst), PlaceOf(src), roundMode, isSetMask, mask, repeatTime, repeatParams);
}

// ---- scalars ----

inline bfloat16_t ToBfloat16(const float& value) { return bfloat16_t(value); }
inline float ToFloat(const bfloat16_t& value) { return value.AsFloat(); }
inline float ToFloat(const half& value) { return static_cast<float>(value); }
inline bfloat16_t Cast(const float& value) { return bfloat16_t(value); }
inline float Cast(const bfloat16_t& value) { return value.AsFloat(); }

template <typename T, typename U, RoundMode roundMode>
U ScalarCast(T value)
{
    using namespace moegrad::hostmodel;
    return CastElement<U>(value, roundMode, false, 1.0F);
}

inline void SetDeqScale(half scale) { moegrad::hostmodel::Self().deq_scale = static_cast<float>(scale); }
inline void SetDeqScale(float scale) { moegrad::hostmodel::Self().deq_scale = scale; }

}  // namespace AscendC
