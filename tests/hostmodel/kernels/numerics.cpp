// Casts and arithmetic for test_numerics.py. Every kernel walks its input in tiles through one pair of buffers.
#include "common.h"

using namespace common;

constexpr int32_t TILE = 8192;

// y = f(x...) tile by tile, with up to three inputs of type U.
template <typename T, typename U, int kInputs, typename F>
void Map(GM_ADDR const (&inputs)[kInputs], GM_ADDR y, int32_t count, F f)
{
    TPipe pipe;
    TBuf<> in_buffer[kInputs];
    TBuf<> out_buffer;
    LocalTensor<U> in[kInputs];
    for (int i = 0; i < kInputs; ++i) {
        pipe.InitBuffer(in_buffer[i], TILE * sizeof(U));
        in[i] = in_buffer[i].template Get<U>();
    }
    pipe.InitBuffer(out_buffer, TILE * sizeof(T));
    LocalTensor<T> out = out_buffer.Get<T>();
    for (int32_t from = 0; from < count; from += TILE) {
        const int32_t n = count - from < TILE ? count - from : TILE;
        for (int i = 0; i < kInputs; ++i) {
            Load(in[i], Global<U>(inputs[i])[from], n);
        }
        Sync<HardEvent::MTE2_V>();
        f(out, in, n);
        Sync<HardEvent::V_MTE3>();
        Store(Global<T>(y)[from], out, n);
        Sync<HardEvent::V_MTE2>();
        Sync<HardEvent::MTE3_V>();
    }
}

template <typename T, typename U>
void cast(GM_ADDR x, GM_ADDR y, int32_t count, int32_t mode)
{
    Map<T, U, 1>({x}, y, count, [mode](LocalTensor<T> out, LocalTensor<U>(&in)[1], int32_t n) {
        Cast(out, in[0], static_cast<RoundMode>(mode), n);
    });
}
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_f16_f32, (cast<half, float>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_bf16_f32, (cast<bfloat16_t, float>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_f32_f16, (cast<float, half>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_f32_bf16, (cast<float, bfloat16_t>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_i32_f32, (cast<int32_t, float>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_f32_i32, (cast<float, int32_t>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_f32_f32, (cast<float, float>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cast_i32_f16, (cast<int32_t, half>))

// half to float at repeat level: 64 elements a repeat, strides {1, 1, 8, 4}.
void cast_repeat(GM_ADDR x, GM_ADDR y, int32_t count)
{
    Map<float, half, 1>({x}, y, count, [](LocalTensor<float> out, LocalTensor<half>(&in)[1], int32_t n) {
        Cast(out, in[0], RoundMode::CAST_NONE, 64, n / 64, {1, 1, 8, 4});
    });
}
MOEGRAD_HOSTMODEL_KERNEL(cast_repeat)

// y = op(x0, x1), op: Add, Sub, Mul, Div, Max, Min; then scalar and unary forms with x1 unused.
template <typename T>
void arithmetic(GM_ADDR x0, GM_ADDR x1, GM_ADDR y, int32_t count, int32_t op, float scalar)
{
    Map<T, T, 2>({x0, x1}, y, count, [op, scalar](LocalTensor<T> out, LocalTensor<T>(&in)[2], int32_t n) {
        const T s = static_cast<T>(scalar);
        switch (op) {
            case 0: Add(out, in[0], in[1], n); break;
            case 1: Sub(out, in[0], in[1], n); break;
            case 2: Mul(out, in[0], in[1], n); break;
            case 3: Div(out, in[0], in[1], n); break;
            case 4: Max(out, in[0], in[1], n); break;
            case 5: Min(out, in[0], in[1], n); break;
            case 6: Adds(out, in[0], s, n); break;
            case 7: Muls(out, in[0], s, n); break;
            case 8: Maxs(out, in[0], s, n); break;
            case 9: Mins(out, in[0], s, n); break;
            case 10: Abs(out, in[0], n); break;
            case 11: Relu(out, in[0], n); break;
            case 12: Sqrt(out, in[0], n); break;
            case 13: Reciprocal(out, in[0], n); break;
            case 14: Exp(out, in[0], n); break;
            case 15: Ln(out, in[0], n); break;
            case 16: Rsqrt(out, in[0], n); break;
            default: break;
        }
    });
}
MOEGRAD_HOSTMODEL_KERNEL_AS(arithmetic_f32, arithmetic<float>)
MOEGRAD_HOSTMODEL_KERNEL_AS(arithmetic_f16, arithmetic<half>)

// y = op(x0, x1, y as x2): Axpy with src x0, MulAddDst, FusedMulAdd.
void multiply_add(GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR y, int32_t count, int32_t op, float scalar)
{
    Map<float, float, 3>({x0, x1, x2}, y, count, [=](LocalTensor<float> out, LocalTensor<float>(&in)[3], int32_t n) {
        Adds(out, in[2], 0.0f, n);
        if (op == 0) {
            Axpy(out, in[0], scalar, n);
        } else if (op == 1) {
            MulAddDst(out, in[0], in[1], n);
        } else {
            FusedMulAdd(out, in[0], in[1], n);
        }
    });
}
MOEGRAD_HOSTMODEL_KERNEL(multiply_add)

// y = x0 > x1 ? x0 : scalar, whole repeats.
void compare_select(GM_ADDR x0, GM_ADDR x1, GM_ADDR y, int32_t count, float scalar)
{
    Map<float, float, 2>({x0, x1}, y, count, [scalar](LocalTensor<float> out, LocalTensor<float>(&in)[2], int32_t n) {
        TBuf<> mask_buffer;
        GetTPipePtr()->InitBuffer(mask_buffer, TILE / 8);
        LocalTensor<uint8_t> mask = mask_buffer.Get<uint8_t>();
        Compare(mask, in[0], in[1], CMPMODE::GT, n);
        Select(out, mask, in[0], scalar, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
    });
}
MOEGRAD_HOSTMODEL_KERNEL(compare_select)

// Binary repeat level with free strides: dst, src0, src1 block and repeat strides from the tiling bytes.
struct Strides {
    int32_t mask;
    int32_t repeat;
    int32_t block[3];
    int32_t step[3];
};
void strided_add(GM_ADDR x0, GM_ADDR x1, GM_ADDR y, int32_t count, Strides s)
{
    Map<float, float, 2>({x0, x1}, y, count, [s](LocalTensor<float> out, LocalTensor<float>(&in)[2], int32_t n) {
        Duplicate(out, -1.0f, n);
        BinaryRepeatParams params;
        params.dstBlkStride = s.block[0];
        params.src0BlkStride = s.block[1];
        params.src1BlkStride = s.block[2];
        params.dstRepStride = s.step[0];
        params.src0RepStride = s.step[1];
        params.src1RepStride = s.step[2];
        Add(out, in[0], in[1], static_cast<uint64_t>(s.mask), s.repeat, params);
    });
}
MOEGRAD_HOSTMODEL_KERNEL(strided_add)

// The bit form of a mask, in 16-bit and 32-bit types.
template <typename T>
void bit_mask(GM_ADDR x0, GM_ADDR y, int32_t count, uint64_t low, uint64_t high)
{
    Map<T, T, 1>({x0}, y, count, [=](LocalTensor<T> out, LocalTensor<T>(&in)[1], int32_t n) {
        const uint64_t mask[2] = {low, high};
        Duplicate(out, static_cast<T>(-1), n);
        Adds(out, in[0], static_cast<T>(1), mask, n * sizeof(T) / 256, {1, 1, 8, 8});
    });
}
MOEGRAD_HOSTMODEL_KERNEL_AS(bit_mask_f32, bit_mask<float>)
MOEGRAD_HOSTMODEL_KERNEL_AS(bit_mask_f16, bit_mask<half>)

// Copy with strides, Brcb, Gather: op 0, 1, 2 on 256 floats.
void rearrange(GM_ADDR x, GM_ADDR offsets, GM_ADDR y, int32_t op)
{
    TPipe pipe;
    TBuf<> x_buffer;
    TBuf<> o_buffer;
    TBuf<> y_buffer;
    pipe.InitBuffer(x_buffer, 1024);
    pipe.InitBuffer(o_buffer, 1024);
    pipe.InitBuffer(y_buffer, 1024);
    LocalTensor<float> in = x_buffer.Get<float>();
    LocalTensor<uint32_t> at = o_buffer.Get<uint32_t>();
    LocalTensor<float> to = y_buffer.Get<float>();
    Load(in, Global<float>(x), 256);
    Load(at, Global<uint32_t>(offsets), 256);
    Sync<HardEvent::MTE2_V>();
    Duplicate(to, 0.0f, 256);
    if (op == 0) {
        Copy(to, in, 64, 2, {1, 2, 8, 16});
    } else if (op == 1) {
        Brcb(to, in, 4, {1, 8});
    } else {
        Gather(to, in, at, 0, 256);
    }
    Sync<HardEvent::V_MTE3>();
    Store(Global<float>(y), to, 256);
}
MOEGRAD_HOSTMODEL_KERNEL(rearrange)
