// Rows 12 to 14, 17 and 18 of the table in docs/hostmodel.md: global addresses, tiling data, units of copies.
// A template has the mistake as <true> and is mended as <false>; unless stated otherwise it doubles N floats: y = 2 x.
#include "common.h"

using namespace common;

// ---- 12 and 13: global addresses ----

// Row r of y (8 floats a row) = 2 * row index[r] of x, zeros for an index of -1.
template <bool kFaulty>
void gather_rows(GM_ADDR x, GM_ADDR index, GM_ADDR y, int32_t rows, int32_t width)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 256);
    LocalTensor<float> row = buf.Get<float>();
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    GlobalTensor<int32_t> gi;
    gx.SetGlobalBuffer((__gm__ float*)x);
    gy.SetGlobalBuffer((__gm__ float*)y);
    gi.SetGlobalBuffer((__gm__ int32_t*)index);
    for (int32_t r = 0; r < rows; ++r) {
        const int64_t from = gi.GetValue(r);
        if (kFaulty || from >= 0) {
            DataCopy(row, gx[from * width], width);
            Sync<HardEvent::MTE2_V>();
            Muls(row, row, 2.0f, width);
        } else {
            Duplicate(row, 0.0f, width);
        }
        Sync<HardEvent::V_MTE3>();
        DataCopy(gy[r * width], row, width);
        Sync<HardEvent::MTE3_MTE2>();
        Sync<HardEvent::MTE3_V>();
    }
}
TWINS(gather_rows)

// y = the row `row` of x, which has more than 2^31 elements.
template <bool kFaulty>
void far_row(GM_ADDR x, GM_ADDR y, int32_t row, int32_t width)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 1024);
    LocalTensor<half> local = buf.Get<half>();
    GlobalTensor<half> gx;
    GlobalTensor<half> gy;
    gx.SetGlobalBuffer((__gm__ half*)x);
    gy.SetGlobalBuffer((__gm__ half*)y);
    if (kFaulty) {
        DataCopy(local, gx[row * width], 64);
    } else {
        DataCopy(local, gx[static_cast<int64_t>(row) * width], 64);
    }
    Sync<HardEvent::MTE2_MTE3>();
    DataCopy(gy, local, 64);
}
TWINS(far_row)

template <bool kFaulty>
void write_input(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.All();
    if (kFaulty) {
        DataCopy(h.gx, h.out, N);
    }
}
TWINS(write_input)

// ---- 14: tiling ----

struct HostTiling {
    int64_t count;
    float factor;
    int32_t rows;
};
struct OldTiling {
    int64_t count;
    float factor;
    int32_t rows;
    int64_t added_later;
};

template <typename Struct>
void scaled(GM_ADDR x, GM_ADDR y, GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(Struct, data, tiling);
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, data.factor, N);
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
MOEGRAD_HOSTMODEL_KERNEL_AS(tiling_mended, scaled<HostTiling>, HostTiling)
MOEGRAD_HOSTMODEL_KERNEL_AS(tiling_faulty, scaled<OldTiling>, OldTiling)

// ---- 17 and 18: units and counts of copies ----

template <bool kFaulty>
void copy_units(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    const uint16_t length = kFaulty ? BYTES / 2 : BYTES / 2 / 32;
    DataCopy(h.in, h.gx, DataCopyParams(2, length, 0, 0));
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
TWINS(copy_units)

template <bool kFaulty>
void copy_range(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopyParams params;
    params.blockCount = kFaulty ? 65536 + 1 : 1;
    params.blockLen = BYTES / 32;
    DataCopy(h.in, h.gx, params);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
TWINS(copy_range)

template <bool kFaulty>
void copy_nothing(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.All();
    if (kFaulty) {
        DataCopyPad(h.gy, h.out, {1, 0, 0, 0, 0});
    }
}
TWINS(copy_nothing)

template <bool kFaulty>
void truncated(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Double();
    PipeBarrier<PIPE_MTE3>();
    if (kFaulty) {
        DataCopy(h.gy, h.out, N - 3);
    } else {
        DataCopyPad(h.gy, h.out, {1, (N - 3) * sizeof(float), 0, 0, 0});
    }
}
TWINS(truncated)
