/*
 * Scalar conversions between float and the two 16-bit float formats: what a kernel uses for single values,
 * and the definition of what the vector conversions must give.
 *
 * bfloat16 (bf16) and IEEE binary16 (f16) values travel as their bits, in uint16_t. Narrowing rounds to
 * nearest even, keeps subnormals, overflows to infinity, and keeps a NaN a NaN: same sign, quiet bit set,
 * payload cut off at the low end. Widening is exact; it sets the quiet bit of an f16 NaN and leaves the
 * bits of a bf16 NaN alone. These are the rules of the conversion instructions of x86 (F16C) and AArch64,
 * so bits agree everywhere.
 */
#ifndef MOEGRAD_HALF_H
#define MOEGRAD_HALF_H

#include <stdint.h>
#include <string.h>

/* The bits of a float. */
static inline uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The float with these bits. */
static inline float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* float -> float, so that a kernel can name the conversion of each of the three dtypes. */
static inline float widen_f32(float value) { return value; }
static inline float narrow_f32(float value) { return value; }

/* bf16 -> float: the upper half of the bits. */
static inline float widen_bf16(uint16_t half) { return float_from_bits((uint32_t)half << 16); }

/* float -> bf16, to nearest even. */
static inline uint16_t narrow_bf16(float value) {
    const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x0040u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* f16 -> float. */
static inline float widen_f16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t bits;
    if (magnitude > 0x0f800000u) /* NaN */
        bits = magnitude | 0x7fc00000u;
    else if (magnitude == 0x0f800000u) /* infinity */
        bits = 0x7f800000u;
    else if (magnitude >= 0x00800000u) /* normal: move the exponent bias from 15 to 127 */
        bits = magnitude + 0x38000000u;
    else /* subnormal: put the mantissa behind a leading one worth 2^-14, then take the one away */
        bits = float_bits(float_from_bits(magnitude + 0x38800000u) - 0x1p-14f);
    return float_from_bits(bits | sign);
}

/* float -> f16, to nearest even. */
static inline uint16_t narrow_f16(float value) {
    const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) /* NaN */
        half = 0x7e00u | (magnitude >> 13 & 0x03ffu);
    else if (magnitude >= 0x47800000u) /* 2^16 and up */
        half = 0x7c00u;
    else if (magnitude >= 0x38800000u) /* normal; the carry of a rounding up may well reach infinity */
        half = (magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
    else /* subnormal: next to 0.5 the float addition itself rounds to multiples of 2^-24 */
        half = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    return (uint16_t)(half | sign);
}

#endif
