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

/* row_copy past the caches; the ends that are no whole 16 bytes of dst are stored as usual. */
static inline void row_stream(void *dst, const void *src, int64_t bytes) {
#if defined(__SSE2__)
    char *to = (char *)dst;
    const char *from = (const char *)src;
    int64_t at = row_head(dst, bytes);
    memcpy(to, from, (size_t)at);
    for (; at + 16 <= bytes; at += 16) {
        uint64_t words[2];
        memcpy(words, from + at, sizeof words);
        stream_16(to + at, words[0], words[1]);
    }
    memcpy(to + at, from + at, (size_t)(bytes - at));
#else
    row_copy(dst, src, bytes);
#endif
}

/* row_zero past the caches. */
static inline void row_stream_zero(void *dst, int64_t bytes) {
#if defined(__SSE2__)
    char *to = (char *)dst;
    int64_t at = row_head(dst, bytes);
    memset(to, 0, (size_t)at);
    for (; at + 16 <= bytes; at += 16)
        stream_16(to + at, 0, 0);
    memset(to + at, 0, (size_t)(bytes - at));
#else
    row_zero(dst, bytes);
#endif
}

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
