/*
 * Thirty-two fp32 lanes as a value: the vocabulary of the generated Cython kernels.
 *
 * lanes_load_D, lanes_add, lanes_mul, lanes_sum and lanes_store_D read as the inner loop of a kernel and
 * compile to registers. Element j0 + l of a row is in lane l, for each dtype D: f32 (float), bf16 and f16
 * (their bits in uint16_t).
 *
 * Results have the same bits on each instruction set. Every lane operation is one correctly rounded fp32
 * operation; there are always 32 lanes, however many registers they fill; lanes_sum adds along one fixed
 * tree; and the conversions agree (moegrad_half.h). Compile with -ffp-contract=off, or the compiler may
 * fuse a multiplication and an addition where the processor can. Only the payload and sign of a NaN made by
 * arithmetic are the processor's own.
 */
#ifndef MOEGRAD_LANES_H
#define MOEGRAD_LANES_H

#include "moegrad_half.h"
#include "moegrad_rows.h"
#include "moegrad_vector.h"

#define LANES 32
#define LANES_PARTS (LANES / VEC_WIDTH)

/* 32 values; lane l is element l % VEC_WIDTH of part l / VEC_WIDTH. */
typedef struct {
    vec part[LANES_PARTS];
} lanes;

/*
 * LANES_EACH(i, statements) repeats them for part i = 0, 1, 2, ... and LANES_EACH_PAIR for i = 0, 2, 4, ...
 * Written out, not looped, because a constant subscript is what keeps a part in its register at -O2.
 */
#define LANES_AT(i, n, ...) { enum { i = n }; __VA_ARGS__ }
#if VEC_WIDTH == 16
#define LANES_EACH_PAIR(i, ...) LANES_AT(i, 0, __VA_ARGS__)
#elif VEC_WIDTH == 8
#define LANES_EACH_PAIR(i, ...) LANES_AT(i, 0, __VA_ARGS__) LANES_AT(i, 2, __VA_ARGS__)
#else
#define LANES_EACH_PAIR(i, ...) \
    LANES_AT(i, 0, __VA_ARGS__) LANES_AT(i, 2, __VA_ARGS__) \
    LANES_AT(i, 4, __VA_ARGS__) LANES_AT(i, 6, __VA_ARGS__)
#endif
#define LANES_EACH(i, ...) \
    LANES_EACH_PAIR(i##_pair, LANES_AT(i, i##_pair, __VA_ARGS__) LANES_AT(i, i##_pair + 1, __VA_ARGS__))

/* ---- values -------------------------------------------------------------------------------------------- */

/* +0 in each lane. */
static inline lanes lanes_zero(void) { return (lanes){0}; }

/* value in each lane, bit for bit. */
static inline lanes lanes_splat(float value) {
    lanes all;
    LANES_EACH(i, all.part[i] = (vec)((vec_bits){0} + float_bits(value));)
    return all;
}

/* a + b, a - b, a * b in each lane, rounded to nearest even. */
static inline lanes lanes_add(lanes a, lanes b) {
    LANES_EACH(i, a.part[i] += b.part[i];)
    return a;
}
static inline lanes lanes_sub(lanes a, lanes b) {
    LANES_EACH(i, a.part[i] -= b.part[i];)
    return a;
}
static inline lanes lanes_mul(lanes a, lanes b) {
    LANES_EACH(i, a.part[i] *= b.part[i];)
    return a;
}

/* The sum of one vector's lanes by halves: lane l += lane l + w/2 for w = VEC_WIDTH, then so for 8, 4, 2. */
static inline float vec_sum(vec s) {
#if VEC_WIDTH == 16
    return (((s[0] + s[8]) + (s[4] + s[12])) + ((s[2] + s[10]) + (s[6] + s[14]))) +
           (((s[1] + s[9]) + (s[5] + s[13])) + ((s[3] + s[11]) + (s[7] + s[15])));
#elif VEC_WIDTH == 8
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
#else
    return (s[0] + s[2]) + (s[1] + s[3]);
#endif
}

/* The sum of the lanes: lane l += lane l + 16 for l < 16, then so for 8, 4, 2, 1; the result is lane 0. Each step adds lanes
 * of one distance on a circle, so lanes that are turned, l to (l + n) % 32, have the same sum, bit for bit. */
static inline float lanes_sum(lanes v) {
#if VEC_WIDTH == 16
    return vec_sum(v.part[0] + v.part[1]);
#elif VEC_WIDTH == 8
    return vec_sum((v.part[0] + v.part[2]) + (v.part[1] + v.part[3]));
#else
    return vec_sum(((v.part[0] + v.part[4]) + (v.part[2] + v.part[6])) +
                   ((v.part[1] + v.part[5]) + (v.part[3] + v.part[7])));
#endif
}

/* The same sum, bit for bit, of lanes in pairs: all steps but the last stay within the even and the odd elements. */
static inline float lanes_sum_pairs(lanes v) {
#if VEC_WIDTH == 16
    return vec_sum(v.part[0]) + vec_sum(v.part[1]);
#elif VEC_WIDTH == 8
    return vec_sum(v.part[0] + v.part[2]) + vec_sum(v.part[1] + v.part[3]);
#else
    return vec_sum((v.part[0] + v.part[4]) + (v.part[2] + v.part[6])) +
           vec_sum((v.part[1] + v.part[5]) + (v.part[3] + v.part[7]));
#endif
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/*
 * For each dtype D, whose elements have the C type E:
 *   lanes lanes_load_D(const E *p)                     32 elements; any alignment
 *   void  lanes_store_D(E *p, lanes v)                 32 elements, rounded to nearest even; any alignment
 *   void  lanes_stream_D(E *p, lanes v)                the same, past the caches; p is a multiple of 16 bytes
 *   lanes lanes_load_D_part(const E *p, int64_t at, int64_t n)     reads n elements to lanes at, at + 1, ..., with
 *                                                                  at >= 0 and at + n <= 32; the other lanes are +0
 *   void  lanes_prefetch_D(const E *p)                 asks for 32 elements in the L2 cache; any address
 *
 * Rows come in random order, which hides the next one from the processor: a loop over one row that
 * prefetches the next was measured to run 1.2 to 1.7 times as fast.
 */
#define LANES_WHOLE(D, E) \
    static inline lanes lanes_load_##D(const E *p) { \
        lanes v; \
        LANES_EACH(i, v.part[i] = vec_load_##D(p + VEC_WIDTH * i);) \
        return v; \
    } \
    static inline void lanes_store_##D(E *p, lanes v) { \
        LANES_EACH(i, vec_store_##D(p + VEC_WIDTH * i, v.part[i]);) \
    } \
    static inline void lanes_stream_##D(E *p, lanes v) { \
        loads_first(); \
        LANES_EACH_PAIR(i, vec_stream_##D(p + VEC_WIDTH * i, v.part[i], v.part[i + 1]);) \
    }

#define LANES_REST(D, E) \
    static inline lanes lanes_load_##D##_part(const E *p, int64_t at, int64_t n) { \
        E row[LANES] = {0}; \
        memcpy(row + at, p, (size_t)n * sizeof(E)); \
        return lanes_load_##D(row); \
    } \
    static inline void lanes_prefetch_##D(const E *p) { \
        for (size_t line = 0; line < LANES * sizeof(E); line += 64) \
            __builtin_prefetch((const char *)p + line, 0, 2); \
    }

LANES_WHOLE(f32, float)
LANES_WHOLE(bf16, uint16_t)
LANES_WHOLE(f16, uint16_t)

/*
 * bf16 in pairs ("bf16_pairs" for D): part 2p holds the even and part 2p + 1 the odd elements of the 2 * VEC_WIDTH
 * elements from 2p * VEC_WIDTH on. Lanes of this order go with one another, with lanes_splat and lanes_zero, and end
 * in lanes_sum_pairs. Everything gives the bits of the plain order; it takes about half of the instructions.
 */
static inline lanes lanes_load_bf16_pairs(const uint16_t *p) {
    lanes v;
    LANES_EACH_PAIR(i,
        const vec_bits words = vec_load_words(p + VEC_WIDTH * i);
        v.part[i] = vec_widen_lower(words);
        v.part[i + 1] = vec_widen_upper(words);)
    return v;
}
__attribute__((cold, noinline)) static lanes lanes_trim_nan(lanes v) {
    LANES_EACH(i, v.part[i] = vec_trim_nan(v.part[i]);)
    return v;
}
/* v, or where it holds a NaN, which is rare, v with each NaN as vec_narrow_pair needs it. */
static inline lanes lanes_narrowable(lanes v) {
    int nan = 0;
    LANES_EACH_PAIR(i, nan |= vec_any_nan(v.part[i], v.part[i + 1]);)
    return __builtin_expect(nan, 0) ? lanes_trim_nan(v) : v;
}
static inline void lanes_store_bf16_pairs(uint16_t *p, lanes v) {
    v = lanes_narrowable(v);
    LANES_EACH_PAIR(i, vec_store_words(p + VEC_WIDTH * i, vec_narrow_pair(v.part[i], v.part[i + 1]));)
}
static inline void lanes_stream_bf16_pairs(uint16_t *p, lanes v) {
    v = lanes_narrowable(v);
    loads_first();
    LANES_EACH_PAIR(i, vec_stream_words(p + VEC_WIDTH * i, vec_narrow_pair(v.part[i], v.part[i + 1]));)
}

LANES_REST(f32, float)
LANES_REST(bf16, uint16_t)
LANES_REST(f16, uint16_t)
LANES_REST(bf16_pairs, uint16_t)

#undef LANES_WHOLE
#undef LANES_REST
#undef LANES_EACH
#undef LANES_EACH_PAIR
#undef LANES_AT

#endif
