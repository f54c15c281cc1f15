/*
 * Whole rows of bytes, whatever their dtype: copy them, zero them, and zero those that no index names.
 *
 * The stream variants write past the caches: for a result larger than the cache, that no one reads soon,
 * they save the read of each line before it is written. A thread that streamed ends with stream_fence.
 */
#ifndef MOEGRAD_ROWS_H
#define MOEGRAD_ROWS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "moegrad_vector.h"

/* Copies bytes >= 0 bytes; any alignment, no overlap. */
static inline void row_copy(void *dst, const void *src, int64_t bytes) { memcpy(dst, src, (size_t)bytes); }

/* Zeroes bytes >= 0 bytes; any alignment. */
static inline void row_zero(void *dst, int64_t bytes) { memset(dst, 0, (size_t)bytes); }

/* How many of these bytes precede the first multiple of 16 bytes. */
static inline int64_t row_head(const void *dst, int64_t bytes) {
    const int64_t head = -(int64_t)(uintptr_t)dst & 15;
    return head < bytes ? head : bytes;
}

/* Writes the bytes of from, or zeros where that is null. */
static inline void row_fill(char *to, const char *from, int64_t bytes) {
    if (from)
        memcpy(to, from, (size_t)bytes);
    else
        memset(to, 0, (size_t)bytes);
}

#if defined(__SSE2__)
static inline void row_stream_16(char *to, const char *from) {
    stream_16(to, from ? _mm_loadu_si128((const __m128i *)from) : _mm_setzero_si128());
}
/* row_fill past the caches: whole vectors from the first that is aligned on, 16 bytes before and after them, and what
 * is no whole 16 bytes of dst by usual stores. */
static inline void row_stream_fill(char *to, const char *from, int64_t bytes) {
    int64_t at = row_head(to, bytes);
    row_fill(to, from, at);
    for (; at + 16 <= bytes && (uintptr_t)(to + at) % sizeof(vec) != 0; at += 16)
        row_stream_16(to + at, from ? from + at : NULL);
    for (; at + (int64_t)sizeof(vec) <= bytes; at += (int64_t)sizeof(vec)) {
        vec value = {0};
        if (from) memcpy(&value, from + at, sizeof value);
        vec_stream(to + at, value);
    }
    for (; at + 16 <= bytes; at += 16)
        row_stream_16(to + at, from ? from + at : NULL);
    row_fill(to + at, from ? from + at : NULL, bytes - at);
}
#else
static inline void row_stream_fill(char *to, const char *from, int64_t bytes) { row_fill(to, from, bytes); }
#endif

/* row_copy and row_zero past the caches. */
static inline void row_stream(void *dst, const void *src, int64_t bytes) {
    row_stream_fill((char *)dst, (const char *)src, bytes);
}
static inline void row_stream_zero(void *dst, int64_t bytes) { row_stream_fill((char *)dst, NULL, bytes); }

/* With fewer bytes to zero than this, waking threads costs more than it saves. */
#define ROWS_PARALLEL_BYTES (1 << 18)

/*
 * Zeroes each row r, 0 <= r < rows, of row_bytes bytes, that no index[i], 0 <= i < slots, names; an index
 * outside that range names nothing. Uses up to num_threads threads, and fences. Returns 0, or -1 with
 * nothing written when there is no memory for one bit per row.
 */
static inline int zero_unnamed_rows(void *out, int64_t rows, int64_t row_bytes,
                                    const int32_t *index, int64_t slots, int num_threads) {
    if (rows <= 0)
        return 0;
    uint8_t *named = (uint8_t *)calloc((size_t)(rows / 8 + 1), 1);
    if (!named)
        return -1;
    int64_t unnamed = rows;
    for (int64_t i = 0; i < slots; i++) {
        const int64_t r = index[i];
        if (r < 0 || r >= rows)
            continue;
        const unsigned bit = 1u << (r & 7);
        unnamed -= !(named[r >> 3] & bit);
        named[r >> 3] = (uint8_t)(named[r >> 3] | bit);
    }
    if (unnamed > 0) {
        const int threads = num_threads > 1 && unnamed * row_bytes >= ROWS_PARALLEL_BYTES ? num_threads : 1;
        (void)threads; /* unused without OpenMP */
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) if (threads > 1)
#endif
        {
#ifdef _OPENMP
#pragma omp for schedule(static, 8) /* small chunks: unnamed rows come in runs */
#endif
            for (int64_t r = 0; r < rows; r++)
                if (!(named[r >> 3] >> (r & 7) & 1))
                    row_stream_zero((char *)out + r * row_bytes, row_bytes);
            stream_fence();
        }
    }
    free(named);
    return 0;
}

#endif
