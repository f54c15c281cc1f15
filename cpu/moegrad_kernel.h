/* What a generated kernel includes: 32 fp32 lanes, whole rows, and the choice of store policy.
 *
 * A kernel decides once a call whether its row output goes around the caches (`stream_pays`) and
 * hands that decision to every store as a flag, which the compiler moves out of the loop. */
#ifndef MOEGRAD_KERNEL_H
#define MOEGRAD_KERNEL_H

#include "moegrad_lanes.h"
#include "moegrad_machine.h"
#include "moegrad_rows.h"

/* Whether storing `rows` rows from `to` on should go around the caches: the output is larger than one part in
 * `part` of the last-level cache, and every row starts where streaming stores may (16 bytes). */
static inline int stream_pays(const void *to, int64_t rows, int64_t row_bytes, int64_t part) {
    if ((uintptr_t)to % 16 != 0 || row_bytes % 16 != 0) return 0;
    return rows * row_bytes > last_level_cache_bytes() / part;
}

/*
 * How many elements before a row its loop begins, such that blocks of 32 elements start at whole cache lines: only then do
 * they leave as such, and NumPy aligns its arrays to 16 bytes. 0 where rows are not streamed, or are aligned each in its
 * own way. No sum changes: see lanes_sum.
 */
static inline int64_t stream_lead(const void *to, int64_t row_bytes, int64_t element_bytes, int stream) {
    const int64_t head = -(int64_t)(uintptr_t)to & 63;
    return stream && row_bytes % 64 == 0 && head != 0 ? LANES - head / element_bytes : 0;
}

/* Copies one row of `nbytes` bytes. */
static inline void row_put(void *to, const void *row, int64_t nbytes, int stream) {
    if (stream)
        row_stream(to, row, nbytes);
    else
        row_copy(to, row, nbytes);
}

/* Stores 32 lanes, around the caches where `stream` is set (then `at` is 16-byte aligned). */
#define MOEGRAD_LANES_PUT(tag, type)                                          \
    static inline void lanes_put_##tag(type *at, lanes value, int stream) {   \
        if (stream)                                                           \
            lanes_stream_##tag(at, value);                                    \
        else                                                                  \
            lanes_store_##tag(at, value);                                     \
    }                                                                         \
    /* Stores `count` lanes from lane `first` on, in the same way. */         \
    static inline void lanes_put_##tag##_part(type *at, lanes value, int64_t first, int64_t count, int stream) { \
        type part[LANES];                                                     \
        lanes_store_##tag(part, value);                                       \
        row_put(at, part + first, count * (int64_t)sizeof(type), stream);     \
    }                                                                         \
    /* Each lane rounded to the type and widened again. */                    \
    static inline lanes lanes_round_##tag(lanes value) {                      \
        type rounded[32];                                                     \
        lanes_store_##tag(rounded, value);                                    \
        return lanes_load_##tag(rounded);                                     \
    }
MOEGRAD_LANES_PUT(f32, float)
MOEGRAD_LANES_PUT(bf16, uint16_t)
MOEGRAD_LANES_PUT(f16, uint16_t)
MOEGRAD_LANES_PUT(bf16_pairs, uint16_t)
#undef MOEGRAD_LANES_PUT

/* Copies one row of `nbytes` bytes to two places at once, or to one where `also` is null; as it goes along asks for as
 * many bytes at `ahead`, any address, in the L2 cache. Whole cache lines of `to` leave as such. */
static inline void row_put_ahead(void *to, void *also, const void *row, int64_t nbytes, const void *ahead, int stream) {
    const int64_t block = (int64_t)sizeof(lanes), lead = -(int64_t)(uintptr_t)to & 63;
    int64_t at = stream && lead < nbytes ? lead : 0;
    row_put(to, row, at, stream);
    if (also) row_put(also, row, at, stream);
    for (; at + block <= nbytes; at += block) {
        lanes_prefetch_f32((const float *)((const char *)ahead + at));
        const lanes bits = lanes_load_f32((const float *)((const char *)row + at));
        lanes_put_f32((float *)((char *)to + at), bits, stream);
        if (also) lanes_put_f32((float *)((char *)also + at), bits, stream);
    }
    row_put((char *)to + at, (const char *)row + at, nbytes - at, stream);
    if (also) row_put((char *)also + at, (const char *)row + at, nbytes - at, stream);
}

/* Writes one row of +0. */
static inline void row_put_zero(void *to, int64_t nbytes, int stream) {
    if (stream)
        row_stream_zero(to, nbytes);
    else
        row_zero(to, nbytes);
}

#endif
