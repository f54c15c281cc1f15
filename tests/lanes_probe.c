/* The headers of cpu/ as ordinary functions over arrays, for test_lanes.py; n is always a multiple of 32. */
#include "moegrad_kernel.h"

#define EACH_BLOCK for (int64_t j = 0; j < n; j += LANES)

int probe_width(void) { return VEC_WIDTH; }

/* Can this processor run what the compiler makes for the instruction set 0 baseline, 1 AVX2, 2 AVX-512? */
int probe_supports(int isa) {
#if defined(__x86_64__)
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return isa == 0 || (avx2 && (isa == 1 || avx512));
#else
    return isa == 0;
#endif
}

#define PROBE_MEMORY(D, E) \
    void probe_widen_##D(const E *in, float *out, int64_t n) { \
        for (int64_t j = 0; j < n; j++) \
            out[j] = widen_##D(in[j]); \
    } \
    void probe_narrow_##D(const float *in, E *out, int64_t n) { \
        for (int64_t j = 0; j < n; j++) \
            out[j] = narrow_##D(in[j]); \
    } \
    void probe_load_##D(const E *in, float *out, int64_t n) { \
        EACH_BLOCK lanes_store_f32(out + j, lanes_load_##D(in + j)); \
    } \
    void probe_store_##D(const float *in, E *out, int64_t n) { \
        EACH_BLOCK lanes_store_##D(out + j, lanes_load_f32(in + j)); \
    } \
    void probe_stream_##D(const float *in, E *out, int64_t n) { \
        EACH_BLOCK lanes_stream_##D(out + j, lanes_load_f32(in + j)); \
        stream_fence(); \
    } \
    void probe_load_##D##_part(const E *in, float *out, int64_t first, int64_t count) { \
        lanes_store_f32(out, lanes_load_##D##_part(in, first, count)); \
    } \
    void probe_put_##D##_part(const float *in, E *out, int64_t first, int64_t count, int stream) { \
        lanes_put_##D##_part(out, lanes_load_f32(in), first, count, stream); \
    }

PROBE_MEMORY(f32, float)
PROBE_MEMORY(bf16, uint16_t)
PROBE_MEMORY(f16, uint16_t)

#define PROBE_DOT(D, E, SUM) \
    void probe_scale_dot_##D(const E *x, const E *g, E *out, float *dot, float scale, int64_t n) { \
        lanes sum = lanes_zero(); \
        EACH_BLOCK { \
            lanes_prefetch_##D(x + j + LANES); \
            const lanes gj = lanes_load_##D(g + j); \
            sum = lanes_add(sum, lanes_mul(lanes_load_##D(x + j), gj)); \
            lanes_store_##D(out + j, lanes_mul(gj, lanes_splat(scale))); \
        } \
        *dot = SUM(sum); \
    }

PROBE_DOT(f32, float, lanes_sum)
PROBE_DOT(bf16, uint16_t, lanes_sum)
PROBE_DOT(f16, uint16_t, lanes_sum)
PROBE_DOT(bf16_pairs, uint16_t, lanes_sum_pairs)

/* Each element times scale, by the streaming stores; out is a multiple of 16 bytes. */
void probe_scale_stream_bf16_pairs(const uint16_t *in, uint16_t *out, float scale, int64_t n) {
    EACH_BLOCK lanes_stream_bf16_pairs(out + j, lanes_mul(lanes_load_bf16_pairs(in + j), lanes_splat(scale)));
    stream_fence();
}
void probe_scale_bf16_pairs_part(const uint16_t *in, uint16_t *out, float scale, int64_t first, int64_t count,
                                 int stream) {
    const lanes scaled = lanes_mul(lanes_load_bf16_pairs_part(in, first, count), lanes_splat(scale));
    lanes_put_bf16_pairs_part(out, scaled, first, count, stream);
}

void probe_add(const float *a, const float *b, float *out, int64_t n) {
    EACH_BLOCK lanes_store_f32(out + j, lanes_add(lanes_load_f32(a + j), lanes_load_f32(b + j)));
}

void probe_sub(const float *a, const float *b, float *out, int64_t n) {
    EACH_BLOCK lanes_store_f32(out + j, lanes_sub(lanes_load_f32(a + j), lanes_load_f32(b + j)));
}

void probe_mul(const float *a, const float *b, float *out, int64_t n) {
    EACH_BLOCK lanes_store_f32(out + j, lanes_mul(lanes_load_f32(a + j), lanes_load_f32(b + j)));
}

/* out[i] is the sum of block i. */
void probe_sum(const float *in, float *out, int64_t n) {
    EACH_BLOCK out[j / LANES] = lanes_sum(lanes_load_f32(in + j));
}

/* Block i of out is in[i] thirty-two times. */
void probe_splat(const float *in, float *out, int64_t n) {
    EACH_BLOCK lanes_store_f32(out + j, lanes_splat(in[j / LANES]));
}

void probe_row_copy(void *dst, const void *src, int64_t bytes) { row_copy(dst, src, bytes); }
void probe_row_stream(void *dst, const void *src, int64_t bytes) {
    row_stream(dst, src, bytes);
    stream_fence();
}
void probe_row_zero(void *dst, int64_t bytes) { row_zero(dst, bytes); }
void probe_row_stream_zero(void *dst, int64_t bytes) {
    row_stream_zero(dst, bytes);
    stream_fence();
}
int probe_zero_unnamed_rows(void *out, int64_t rows, int64_t row_bytes, const int32_t *index, int64_t slots,
                            int num_threads) {
    return zero_unnamed_rows(out, rows, row_bytes, index, slots, num_threads);
}
