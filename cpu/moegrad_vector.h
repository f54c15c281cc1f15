/*
 * One native vector of floats: the only header here that knows instruction sets.
 *
 * A vec holds VEC_WIDTH floats: 8 with AVX2 and F16C, else 4 (SSE2, NEON, or whatever the compiler makes of it);
 * 16 with AVX-512 where a kernel asks for vectors of 512 bits (moegrad_kernel_512.h), which the plan knows. Arithmetic uses the vector extensions of GCC and Clang and is the same text for
 * all. Conversions and non-temporal stores differ. The AVX conversions are the compiler's builtins called
 * by name: <immintrin.h> would add 0.2 s to the 0.5 s that a kernel takes to compile.
 */
#ifndef MOEGRAD_VECTOR_H
#define MOEGRAD_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifdef __FAST_MATH__
#error "moegrad kernels promise their bits: compile them without -ffast-math"
#endif

#if defined(MOEGRAD_VECTOR_512) && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define VEC_WIDTH 16
#elif defined(__AVX2__) && defined(__F16C__)
#define VEC_WIDTH 8
#else
#define VEC_WIDTH 4
#endif

typedef float vec __attribute__((vector_size(4 * VEC_WIDTH)));
typedef int32_t vec_mask __attribute__((vector_size(4 * VEC_WIDTH))); /* what a comparison gives: 0 or -1 */
typedef uint32_t vec_bits __attribute__((vector_size(4 * VEC_WIDTH)));
typedef int16_t vec_short __attribute__((vector_size(2 * VEC_WIDTH))); /* vec_half as the builtins see it */
typedef uint16_t vec_half __attribute__((vector_size(2 * VEC_WIDTH)));

/* ---- uint16 <-> uint32 --------------------------------------------------------------------------------- */

/* Each element, zero-extended. */
static inline vec_bits vec_extend(vec_half half) {
#if VEC_WIDTH == 16 && !defined(__clang__)
    return (vec_bits)__builtin_ia32_pmovzxwd512_mask((vec_short)half, (vec_mask){0}, 0xffff);
#elif VEC_WIDTH == 8 && !defined(__clang__)
    return (vec_bits)__builtin_ia32_pmovzxwd256((vec_short)half);
#elif VEC_WIDTH == 4 && defined(__SSE2__)
    return (vec_bits)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)&half), _mm_setzero_si128());
#elif defined(__aarch64__)
    return (vec_bits)vmovl_u16((uint16x4_t)half);
#else
    return __builtin_convertvector(half, vec_bits);
#endif
}

/* Each element, known to be below 2^16. */
static inline vec_half vec_shorten(vec_bits bits) {
#if VEC_WIDTH == 16 && !defined(__clang__)
    return (vec_half)__builtin_ia32_pmovdw512_mask((vec_mask)bits, (vec_short){0}, 0xffff);
#elif VEC_WIDTH == 8 && !defined(__clang__)
    typedef long long words __attribute__((vector_size(32)));
    const __m128i low = __builtin_ia32_extract128i256((words)bits, 0);
    const __m128i high = __builtin_ia32_extract128i256((words)bits, 1);
    return (vec_half)__builtin_ia32_packusdw128((__v4si)low, (__v4si)high);
#elif VEC_WIDTH == 4 && defined(__SSE2__) /* SSE2 packs signed numbers only: make them that */
    const __m128i low_signed = _mm_srai_epi32(_mm_slli_epi32((__m128i)bits, 16), 16);
    const __m128i packed = _mm_packs_epi32(low_signed, low_signed);
    vec_half half;
    memcpy(&half, &packed, sizeof half);
    return half;
#else
    return __builtin_convertvector(bits, vec_half);
#endif
}

/* ---- float <-> bf16, float <-> f16: the rules are those of moegrad_half.h ------------------------------ */

static inline vec vec_widen_bf16(vec_half half) { return (vec)(vec_extend(half) << 16); }

static inline vec_half vec_narrow_bf16(vec value) {
    const vec_bits bits = (vec_bits)value, is_number = (vec_bits)(value == value);
    const vec_bits quiet = ~is_number & 0x00400000u, round = is_number & (0x7fffu + (bits >> 16 & 1u));
    return vec_shorten(((bits | quiet) + round) >> 16);
}

/*
 * Pairs: one load of 2 * VEC_WIDTH bf16 holds two vectors as they are, the elements 0, 2, 4, ... in the lower and
 * 1, 3, 5, ... in the upper halves of its words. Widening is a shift and a mask, and nothing is packed on the way back.
 */
static inline vec vec_widen_lower(vec_bits words) { return (vec)(words << 16); }
static inline vec vec_widen_upper(vec_bits words) { return (vec)(words & 0xffff0000u); }

/* Each number's bits, such that the upper half is the bf16 nearest; not for a NaN with bits in its lower half. */
static inline vec_bits vec_round_bf16(vec value) {
    const vec_bits bits = (vec_bits)value;
    return bits + 0x7fffu + (bits >> 16 & 1u);
}
static inline vec_bits vec_narrow_pair(vec lower, vec upper) {
    return vec_round_bf16(lower) >> 16 | (vec_round_bf16(upper) & 0xffff0000u);
}

/* Each NaN quiet and without the lower half of its bits, so that vec_round_bf16 keeps it. */
static inline vec vec_trim_nan(vec value) {
    const vec_bits bits = (vec_bits)value, is_nan = (vec_bits)(value != value);
    return (vec)((bits & ~(is_nan & 0xffffu)) | (is_nan & 0x00400000u));
}

/* Whether a lane of either vector holds a NaN. */
static inline int vec_any_nan(vec a, vec b) {
#if VEC_WIDTH == 16 && !defined(__clang__)
    return __builtin_ia32_cmpps512_mask(a, b, 3, -1, 4) != 0; /* 3: unordered */
#elif VEC_WIDTH == 8 && !defined(__clang__)
    return __builtin_ia32_movmskps256(__builtin_ia32_cmpps256(a, b, 3)) != 0;
#elif VEC_WIDTH == 4 && defined(__SSE2__)
    return _mm_movemask_ps(_mm_cmpunord_ps((__m128)a, (__m128)b)) != 0;
#else
    const vec_mask ordered = (a == a) & (b == b);
    int32_t all = -1;
    for (int i = 0; i < VEC_WIDTH; i++)
        all &= ordered[i];
    return !all;
#endif
}

#if VEC_WIDTH == 16 /* the instructions of AVX-512; 4: no suppression of exceptions, 0: to nearest even */
static inline vec vec_widen_f16(vec_half half) {
    return __builtin_ia32_vcvtph2ps512_mask((vec_short)half, (vec){0}, -1, 4);
}
static inline vec_half vec_narrow_f16(vec value) {
    return (vec_half)__builtin_ia32_vcvtps2ph512_mask(value, 0, (vec_short){0}, 0xffff);
}
#elif VEC_WIDTH == 8 /* the instructions of F16C */
static inline vec vec_widen_f16(vec_half half) { return __builtin_ia32_vcvtph2ps256((vec_short)half); }
static inline vec_half vec_narrow_f16(vec value) { return (vec_half)__builtin_ia32_vcvtps2ph256(value, 0); }
#elif defined(__aarch64__)
static inline vec vec_widen_f16(vec_half half) { return (vec)vcvt_f32_f16((float16x4_t)half); }
static inline vec_half vec_narrow_f16(vec value) { return (vec_half)vcvt_f16_f32((float32x4_t)value); }
#else /* no such instruction: the cases of the scalar functions, all computed, then selected */
static inline vec_bits vec_select(vec_mask mask, vec_bits a, vec_bits b) {
    return ((vec_bits)mask & a) | (~(vec_bits)mask & b);
}
static inline vec vec_widen_f16(vec_half half) {
    const vec_bits bits = vec_extend(half), sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;
    const vec_bits is_nan = (vec_bits)((vec_mask)magnitude > 0x0f800000);
    const vec_bits is_special = (vec_bits)((vec_mask)magnitude >= 0x0f800000);
    const vec finite = (vec)magnitude * 0x1p112f; /* exact: moves the exponent bias from 15 to 127 */
    return (vec)(sign | (vec_bits)finite | (is_special & 0x7f800000u) | (is_nan & 0x00400000u));
}
static inline vec_half vec_narrow_f16(vec value) {
    const vec_bits bits = (vec_bits)value, sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    const vec_bits nan = 0x7e00u | (magnitude >> 13 & 0x03ffu), infinity = (vec_bits){0} + 0x7c00u;
    const vec_bits special = vec_select((vec_mask)magnitude > 0x7f800000, nan, infinity);
    const vec_bits normal = (magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
    const vec_bits subnormal = (vec_bits)((vec)magnitude + 0.5f) - 0x3f000000u;
    const vec_bits finite = vec_select((vec_mask)magnitude < 0x38800000, subnormal, normal);
    return vec_shorten(sign | vec_select((vec_mask)magnitude >= 0x47800000, special, finite));
}
#endif

/* ---- memory: VEC_WIDTH elements at any alignment ------------------------------------------------------- */

static inline vec vec_load_f32(const float *p) {
    vec value;
    memcpy(&value, p, sizeof value);
    return value;
}
static inline void vec_store_f32(float *p, vec value) { memcpy(p, &value, sizeof value); }

static inline vec_half vec_load_half(const uint16_t *p) {
    vec_half half;
    memcpy(&half, p, sizeof half);
    return half;
}
static inline void vec_store_half(uint16_t *p, vec_half half) { memcpy(p, &half, sizeof half); }

static inline vec_bits vec_load_words(const uint16_t *p) {
    vec_bits words;
    memcpy(&words, p, sizeof words);
    return words;
}
static inline void vec_store_words(uint16_t *p, vec_bits words) { memcpy(p, &words, sizeof words); }

static inline vec vec_load_bf16(const uint16_t *p) { return vec_widen_bf16(vec_load_half(p)); }
static inline vec vec_load_f16(const uint16_t *p) { return vec_widen_f16(vec_load_half(p)); }
static inline void vec_store_bf16(uint16_t *p, vec value) { vec_store_half(p, vec_narrow_bf16(value)); }
static inline void vec_store_f16(uint16_t *p, vec value) { vec_store_half(p, vec_narrow_f16(value)); }

/* ---- memory past the caches: 2 * VEC_WIDTH elements at a multiple of 16 bytes -------------------------- */

/*
 * A non-temporal store is 16 bytes on each x86, since NumPy aligns to no more; whole vectors leave as such where they are
 * aligned, as outputs of our own are. The branch goes the same way for all of a row. Elsewhere than on x86 we store as
 * usual.
 */
#if defined(__SSE2__)
static inline void stream_16(void *p, __m128i value) { _mm_stream_si128((__m128i *)p, value); }

#if VEC_WIDTH > 4
/* 16 bytes of a vector, the i-th. */
static inline __m128i vec_part_16(vec value, int i) {
#if defined(__clang__) || __GNUC__ >= 12 /* else the vector goes through memory */
#define VEC_PART_16(at) (__m128i)__builtin_shufflevector(value, value, at, at + 1, at + 2, at + 3)
    switch (i) {
    case 0: return VEC_PART_16(0);
    case 1: return VEC_PART_16(4);
#if VEC_WIDTH == 16
    case 2: return VEC_PART_16(8);
    case 3: return VEC_PART_16(12);
#endif
    default: return _mm_setzero_si128();
    }
#undef VEC_PART_16
#else
    __m128i part;
    memcpy(&part, (const char *)&value + 16 * i, sizeof part);
    return part;
#endif
}
#endif

static inline void vec_stream(void *p, vec value) {
#if VEC_WIDTH == 4
    stream_16(p, (__m128i)value);
#else
    if ((uintptr_t)p % sizeof value == 0) {
#if VEC_WIDTH == 16
        __builtin_ia32_movntps512((float *)p, value);
#else
        __builtin_ia32_movntps256((float *)p, value);
#endif
        return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < VEC_WIDTH / 4; i++)
        stream_16((char *)p + 16 * i, vec_part_16(value, i));
#endif
}
static inline void vec_stream_f32(float *p, vec low, vec high) {
    vec_stream(p, low);
    vec_stream(p + VEC_WIDTH, high);
}
static inline void vec_stream_words(uint16_t *p, vec_bits words) { vec_stream(p, (vec)words); }
static inline void vec_stream_half(uint16_t *p, vec_half low, vec_half high) {
#if VEC_WIDTH == 16
    vec both;
    memcpy(&both, &low, sizeof low);
    memcpy((char *)&both + sizeof low, &high, sizeof high);
    vec_stream(p, both);
#elif VEC_WIDTH == 8
    stream_16(p, (__m128i)low);
    stream_16(p + 8, (__m128i)high);
#else
    stream_16(p, _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)&low), _mm_loadl_epi64((const __m128i *)&high)));
#endif
}
#else
static inline void vec_stream_f32(float *p, vec low, vec high) {
    vec_store_f32(p, low);
    vec_store_f32(p + VEC_WIDTH, high);
}
static inline void vec_stream_words(uint16_t *p, vec_bits words) { vec_store_words(p, words); }
static inline void vec_stream_half(uint16_t *p, vec_half low, vec_half high) {
    vec_store_half(p, low);
    vec_store_half(p + VEC_WIDTH, high);
}
#endif

static inline void vec_stream_bf16(uint16_t *p, vec low, vec high) {
    vec_stream_half(p, vec_narrow_bf16(low), vec_narrow_bf16(high));
}
static inline void vec_stream_f16(uint16_t *p, vec low, vec high) {
    vec_stream_half(p, vec_narrow_f16(low), vec_narrow_f16(high));
}

/*
 * Keeps the compiler from moving loads behind the streaming stores that follow. A load that waits among them costs
 * a fifth to a half of the rate: gcc would sink a row's loads to where their values are used.
 */
static inline void loads_first(void) { __asm__ volatile("" ::: "memory"); }

/* Orders the non-temporal stores of this thread before its later stores: call it once, after the last one. */
static inline void stream_fence(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
