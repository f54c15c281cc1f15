// half and bfloat16_t as the device compiler offers them: half computes, bfloat16_t is storage.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rounding.h"

namespace moegrad::hostmodel {

inline float FloatFromBits(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t BitsFromFloat(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float HalfToFloat(uint16_t bits)
{
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1Fu;
    const uint32_t fraction = bits & 0x3FFu;
    if (exponent == 0x1F) {
        return FloatFromBits(sign | 0x7F800000u | (fraction << 13));
    }
    if (exponent == 0) {
        const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return FloatFromBits(sign | BitsFromFloat(magnitude));
    }
    return FloatFromBits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

}  // namespace moegrad::hostmodel

// IEEE 754 binary16. Converts freely, as the built-in type does.
class half {
public:
    half() = default;

    template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N>>>
    half(N value)
    {
        using namespace moegrad::hostmodel;
        if constexpr (std::is_integral_v<N>) {
            bits_ = static_cast<uint16_t>(
                HalfFormat::Encode(DecomposeInteger(value), Rounding::kNearestEven, false));
        } else {
            bits_ = static_cast<uint16_t>(HalfFormat::Encode(value, Rounding::kNearestEven, false));
        }
    }

    operator float() const { return moegrad::hostmodel::HalfToFloat(bits_); }

    static half FromBits(uint16_t bits)
    {
        half value;
        value.bits_ = bits;
        return value;
    }
    uint16_t bits() const { return bits_; }

    half& operator+=(half other) { return *this = half(float(*this) + float(other)); }
    half& operator-=(half other) { return *this = half(float(*this) - float(other)); }
    half& operator*=(half other) { return *this = half(float(*this) * float(other)); }
    half& operator/=(half other) { return *this = half(float(*this) / float(other)); }

private:
    uint16_t bits_;
};

// Storage only: arithmetic goes through ToFloat and ToBfloat16, as on the device. Literals are accepted because
// kernels write `DataCopyPadExtParams<T>{false, 0, 0, 0}` for every T.
class bfloat16_t {
public:
    bfloat16_t() = default;

    template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N>>>
    bfloat16_t(N value)
    {
        using namespace moegrad::hostmodel;
        const auto mode = Rounding::kNearestEven;
        bits_ = static_cast<uint16_t>(Bfloat16Format::Encode(static_cast<double>(value), mode, false));
    }

    static bfloat16_t FromBits(uint16_t bits)
    {
        bfloat16_t value;
        value.bits_ = bits;
        return value;
    }
    uint16_t bits() const { return bits_; }

    bool operator==(bfloat16_t other) const { return AsFloat() == other.AsFloat(); }
    bool operator!=(bfloat16_t other) const { return AsFloat() != other.AsFloat(); }

    float AsFloat() const { return moegrad::hostmodel::FloatFromBits(static_cast<uint32_t>(bits_) << 16); }

private:
    uint16_t bits_;
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16_t) == 2, "16-bit floats occupy two bytes");
static_assert(std::is_trivially_copyable_v<half> && std::is_trivially_copyable_v<bfloat16_t>,
              "16-bit floats travel in structs by value");

namespace moegrad::hostmodel {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, half>;
template <typename T>
inline constexpr bool kIsBfloat16 = std::is_same_v<T, bfloat16_t>;
template <typename T>
inline constexpr bool kIsFloating = kIsHalf<T> || kIsBfloat16<T> || std::is_floating_point_v<T>;

// Widens any element to double, exactly (64-bit integers excepted).
template <typename T>
double Widen(T value)
{
    if constexpr (kIsBfloat16<T>) {
        return value.AsFloat();
    } else if constexpr (kIsHalf<T>) {
        return static_cast<float>(value);
    } else {
        return static_cast<double>(value);
    }
}

// Rounds a result to the element type T, one rounding.
template <typename T>
T NarrowTo(double value, Rounding mode, bool saturate)
{
    if constexpr (kIsHalf<T>) {
        return half::FromBits(static_cast<uint16_t>(HalfFormat::Encode(value, mode, saturate)));
    } else if constexpr (kIsBfloat16<T>) {
        return bfloat16_t::FromBits(static_cast<uint16_t>(Bfloat16Format::Encode(value, mode, saturate)));
    } else if constexpr (std::is_same_v<T, float>) {
        return FloatFromBits(FloatFormat::Encode(value, mode, false));
    } else if constexpr (std::is_integral_v<T>) {
        return RoundToInteger<T>(value, mode);
    } else {
        return static_cast<T>(value);
    }
}

}  // namespace moegrad::hostmodel
