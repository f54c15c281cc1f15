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

/* Stores 32 lanes, around the caches where `stream` is set (then `at` is 16-byte aligned). */
#define MOEGRAD_LANES_PUT(tag, type)                                          \
    static inline void lanes_put_##tag(type *at, lanes value, int stream) {   \
        if (stream)                                                           \
            lanes_stream_##tag(at, value);                                    \
        else                                                                  \
            lanes_store_##tag(at, value);                                     \
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

/* Asks for part `part` of `parts` of a row in the L2 cache; any address. */
static inline void row_prefetch_part(const void *row, int64_t nbytes, int64_t part, int64_t parts) {
    const int64_t step = (nbytes / parts + 63) & ~(int64_t)63, end = step * (part + 1);
    for (int64_t at = step * part; at < end && at < nbytes; at += 64)
        __builtin_prefetch((const char *)row + at, 0, 2);
}

/* Copies one row of `nbytes` bytes. */
static inline void row_put(void *to, const void *row, int64_t nbytes, int stream) {
    if (stream)
        row_stream(to, row, nbytes);
    else
        row_copy(to, row, nbytes);
}

/* Writes one row of +0. */
static inline void row_put_zero(void *to, int64_t nbytes, int stream) {
    if (stream)
        row_stream_zero(to, nbytes);
    else
        row_zero(to, nbytes);
}

#endif
