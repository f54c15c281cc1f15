/*
 * What a machine's memory can do, for benchmarks: the same bytes as an operator moves, without its arithmetic.
 */
#ifndef MOEGRAD_LIMITS_H
#define MOEGRAD_LIMITS_H

#include <stdint.h>

#include "moegrad_rows.h"

#define LIMIT_PIECE ((int64_t)1 << 16)
#define LIMIT_PAGE ((int64_t)4096)

/* Reads one byte of every line, which brings the line in. */
static inline void limit_read(const char *from, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64)
        (void)*(const volatile char *)(from + at);
}

/* Writes `written` bytes from the `read` bytes at `from`: repeated where those are fewer, else the rest is only read. */
static inline void limit_piece(char *to, int64_t written, const char *from, int64_t read) {
    for (int64_t at = 0; at < written && read > 0; at += read)
        row_stream(to + at, from, written - at < read ? written - at : read);
    if (read > written) limit_read(from + written, read - written);
    stream_fence();
}

/* Reads all `read` bytes at `from` and writes all `written` bytes at `to`, in order, in pieces of 64 KiB. */
static inline void limit_traffic(char *to, int64_t written, const char *from, int64_t read, int num_threads) {
    const int64_t pieces = (written + LIMIT_PIECE - 1) / LIMIT_PIECE;
    (void)num_threads; /* unused without OpenMP */
#ifdef _OPENMP
#pragma omp parallel for num_threads(num_threads) schedule(static)
#endif
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t at = piece * LIMIT_PIECE, size = written - at < LIMIT_PIECE ? written - at : LIMIT_PIECE;
        const int64_t start = (int64_t)((double)read * at / written) & ~(int64_t)63;
        const int64_t end = piece + 1 == pieces ? read : (int64_t)((double)read * (at + size) / written) & ~(int64_t)63;
        limit_piece(to + at, size, from + start, end - start);
    }
}

/* Copies `bytes` bytes, a line of each of four pages in turn: processors foresee several streams better than one. */
static inline void limit_pages(char *to, const char *from, int64_t bytes, int num_threads) {
    const int64_t group = 4 * LIMIT_PAGE, groups = bytes / group;
    (void)num_threads; /* unused without OpenMP */
#ifdef _OPENMP
#pragma omp parallel num_threads(num_threads)
#endif
    {
#ifdef _OPENMP
#pragma omp for schedule(static)
#endif
        for (int64_t each = 0; each < groups; each++)
            for (int64_t line = 0; line < LIMIT_PAGE; line += 64)
                for (int64_t at = each * group + line; at < (each + 1) * group; at += LIMIT_PAGE)
                    row_stream(to + at, from + at, 64);
        stream_fence();
    }
    row_stream(to + groups * group, from + groups * group, bytes - groups * group);
    stream_fence();
}

/* Copies row index[i] of `from` to row index[i] of `to`, for i in order; asks for the next row meanwhile. */
static inline void limit_rows(char *to, const char *from, int64_t row_bytes, const int32_t *index, int64_t count,
                              int num_threads) {
    (void)num_threads; /* unused without OpenMP */
#ifdef _OPENMP
#pragma omp parallel for num_threads(num_threads) schedule(static)
#endif
    for (int64_t i = 0; i < count; i++) {
        const char *row = from + index[i] * row_bytes, *next = from + index[i + 1 < count ? i + 1 : i] * row_bytes;
        for (int64_t at = 0; at < row_bytes; at += 256) {
            const int64_t size = row_bytes - at < 256 ? row_bytes - at : 256;
            for (int64_t line = 0; line < size; line += 64)
                __builtin_prefetch(next + at + line, 0, 2);
            row_stream(to + index[i] * row_bytes + at, row + at, size);
        }
        stream_fence();
    }
}

#endif
