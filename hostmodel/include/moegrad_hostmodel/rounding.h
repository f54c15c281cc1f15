// Exact rounding of a value to a narrow floating point format or to an integer, in every mode that Cast knows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace moegrad::hostmodel {

enum class Rounding : uint8_t { kNearestEven, kFloor, kCeil, kNearestAway, kTruncate, kOdd };

// A finite value, exactly: (negative ? -1 : 1) * significand * 2^exponent.
struct Exact {
    bool negative;
    uint64_t significand;
    int exponent;
};

inline Exact Decompose(double value)
{
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const int biased = static_cast<int>(bits >> 52) & 0x7FF;
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    const uint64_t significand = biased == 0 ? fraction : fraction | (uint64_t{1} << 52);
    return {(bits >> 63) != 0, significand, (biased == 0 ? 1 : biased) - 1075};
}

template <typename I>
Exact DecomposeInteger(I value)
{
    const bool negative = value < 0;
    const auto magnitude = static_cast<uint64_t>(value);
    return {negative, negative ? uint64_t{0} - magnitude : magnitude, 0};
}

// Drops the low |shift| bits of |significand|, rounding the rest.
inline uint64_t RoundShift(uint64_t significand, int shift, bool negative, Rounding mode)
{
    if (shift <= 0) {
        return significand << -shift;
    }
    const bool vanishes = shift > 63;
    const uint64_t kept = vanishes ? 0 : significand >> shift;
    const uint64_t rest = vanishes ? significand : significand & ((uint64_t{1} << shift) - 1);
    if (rest == 0) {
        return kept;
    }
    const uint64_t half = shift > 64 ? 0 : uint64_t{1} << (shift - 1);
    const bool above_half = half != 0 && rest > half;
    const bool tie = half != 0 && rest == half;
    switch (mode) {
        case Rounding::kNearestEven: return kept + ((above_half || (tie && (kept & 1) != 0)) ? 1 : 0);
        case Rounding::kNearestAway: return kept + ((above_half || tie) ? 1 : 0);
        case Rounding::kFloor: return kept + (negative ? 1 : 0);
        case Rounding::kCeil: return kept + (negative ? 0 : 1);
        case Rounding::kTruncate: return kept;
        case Rounding::kOdd: return kept | 1;
    }
    return kept;
}

// A binary floating point format without its sign bit.
template <int kExponentBits, int kMantissaBits>
struct Format {
    static constexpr uint32_t kInfinity = ((1u << kExponentBits) - 1) << kMantissaBits;
    static constexpr uint32_t kMax = kInfinity - 1;
    static constexpr uint32_t kQuietBit = 1u << (kMantissaBits - 1);
    static constexpr int kMinExponent = 2 - (1 << (kExponentBits - 1));
    static constexpr int kSignShift = kExponentBits + kMantissaBits;

    // Overflow goes to infinity unless the mode rounds towards zero there, as IEEE 754 has it.
    static uint32_t Overflow(bool negative, Rounding mode, bool saturate)
    {
        const bool towards_zero = mode == Rounding::kTruncate || mode == Rounding::kOdd ||
                                  (mode == Rounding::kFloor && !negative) ||
                                  (mode == Rounding::kCeil && negative);
        return saturate || towards_zero ? kMax : kInfinity;
    }

    static uint32_t Encode(Exact value, Rounding mode, bool saturate)
    {
        const uint32_t sign = (value.negative ? 1u : 0u) << kSignShift;
        if (value.significand == 0) {
            return sign;
        }
        const int top = 63 - __builtin_clzll(value.significand);
        const int exponent = value.exponent + top;  // of the leading bit
        const int unit = (exponent < kMinExponent ? kMinExponent : exponent) - kMantissaBits;
        const uint64_t scaled =
            RoundShift(value.significand, unit - value.exponent, value.negative, mode);
        // A carry out of the mantissa moves into the exponent by itself.
        const int64_t biased = exponent < kMinExponent ? 0 : exponent - kMinExponent;
        const uint64_t magnitude = (static_cast<uint64_t>(biased) << kMantissaBits) + scaled;
        if (biased > (1 << kExponentBits) || magnitude >= kInfinity) {
            return sign | Overflow(value.negative, mode, saturate);
        }
        return sign | static_cast<uint32_t>(magnitude);
    }

    // Saturating mode turns NaN into zero and infinity into the largest number; the other mode keeps both.
    static uint32_t Encode(double value, Rounding mode, bool saturate)
    {
        const uint32_t sign = (std::signbit(value) ? 1u : 0u) << kSignShift;
        if (std::isnan(value)) {
            return saturate ? 0u : sign | kInfinity | kQuietBit;
        }
        if (std::isinf(value)) {
            return sign | (saturate ? kMax : kInfinity);
        }
        return Encode(Decompose(value), mode, saturate);
    }
};

using HalfFormat = Format<5, 10>;
using Bfloat16Format = Format<8, 7>;
using FloatFormat = Format<8, 23>;

inline double RoundToIntegral(double value, Rounding mode)
{
    switch (mode) {
        case Rounding::kFloor: return std::floor(value);
        case Rounding::kCeil: return std::ceil(value);
        case Rounding::kNearestAway: return std::round(value);
        case Rounding::kTruncate: return std::trunc(value);
        case Rounding::kNearestEven: break;
        case Rounding::kOdd: break;
    }
    const double lower = std::floor(value);
    const double distance = value - lower;
    const bool up = distance > 0.5 || (distance == 0.5 && std::fmod(lower, 2.0) != 0.0);
    return std::copysign(up ? lower + 1.0 : lower, value);
}

// Out of range saturates, NaN becomes zero.
template <typename I>
I RoundToInteger(double value, Rounding mode)
{
    if (std::isnan(value)) {
        return 0;
    }
    const double rounded = RoundToIntegral(value, mode);
    const double limit = std::ldexp(1.0, std::numeric_limits<I>::digits);
    if (rounded >= limit) {
        return std::numeric_limits<I>::max();
    }
    if (rounded <= static_cast<double>(std::numeric_limits<I>::min())) {
        return std::numeric_limits<I>::min();
    }
    return static_cast<I>(rounded);
}

}  // namespace moegrad::hostmodel
