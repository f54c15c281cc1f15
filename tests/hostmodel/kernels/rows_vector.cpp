// Rows 15, 16 and 19 of the table in docs/hostmodel.md: repeats, masks, strides, rounding modes.
// A template has the mistake as <true> and is mended as <false>; unless stated otherwise it doubles N floats: y = 2 x.
#include "common.h"

using namespace common;

template <bool kFaulty>
void repeats(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    const int32_t repeat = kFaulty ? 256 : N / 64;
    Muls(h.out, h.in, 2.0f, 64, repeat, {1, 1, 8, 8});
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
TWINS(repeats)

template <bool kFaulty>
void wide_mask(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, kFaulty ? 128 : 64, N / 64, {1, 1, 8, 8});
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
TWINS(wide_mask)

template <bool kFaulty>
void high_mask_word(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    uint64_t mask[2] = {~uint64_t{0}, kFaulty ? 1u : 0u};
    Muls(h.out, h.in, 2.0f, mask, N / 64, {1, 1, 8, 8});
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
TWINS(high_mask_word)

// y[0..7] = sums of the eight blocks of the first repeat of x.
template <bool kFaulty>
void block_sums(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, 64);
    h.Sync<HardEvent::MTE2_V>();
    if (kFaulty) {
        BlockReduceSum(h.out, h.in, 64, 1, 1, 1, 8);
    } else {
        BlockReduceSum(h.out, h.in, 1, 64, 1, 1, 8);
    }
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, 8);
}
TWINS(block_sums)

// y[0..15] = sums of the 16 repeats of x; the destination's stride counts elements.
template <bool kFaulty>
void repeat_sums(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    WholeReduceSum(h.out, h.in, 64, 16, kFaulty ? 8 : 1, 1, 8);
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, 16);
}
TWINS(repeat_sums)

// y (bf16) = x (float), N elements.
template <bool kFaulty>
void to_bfloat16(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> from_buf;
    TBuf<TPosition::VECCALC> to_buf;
    pipe.InitBuffer(from_buf, BYTES);
    pipe.InitBuffer(to_buf, BYTES / 2);
    LocalTensor<float> from = from_buf.Get<float>();
    LocalTensor<bfloat16_t> to = to_buf.Get<bfloat16_t>();
    GlobalTensor<float> gx;
    GlobalTensor<bfloat16_t> gy;
    gx.SetGlobalBuffer((__gm__ float*)x);
    gy.SetGlobalBuffer((__gm__ bfloat16_t*)y);
    DataCopy(from, gx, N);
    Sync<HardEvent::MTE2_V>();
    Cast(to, from, kFaulty ? RoundMode::CAST_NONE : RoundMode::CAST_RINT, N);
    Sync<HardEvent::V_MTE3>();
    DataCopy(gy, to, N);
}
TWINS(to_bfloat16)
