// Moves, queues and ragged rows for test_moves.py.
#include "common.h"

using namespace common;

struct PadCase {
    int32_t blocks;
    int32_t length;  // bytes
    int32_t gm_stride;
    int32_t ub_stride;
    int32_t is_pad;
    int32_t left;
    int32_t right;
    int32_t out_elements;
};

// One padded load, then the whole UB buffer to y, so that padding and gaps can be seen.
template <typename T>
void pad_in(GM_ADDR x, GM_ADDR y, PadCase c)
{
    TPipe pipe;
    TBuf<TPosition::VECIN> buffer;
    pipe.InitBuffer(buffer, c.out_elements * sizeof(T));
    LocalTensor<T> local = buffer.Get<T>();
    Duplicate(local, static_cast<T>(-7), c.out_elements);
    Sync<HardEvent::V_MTE2>();
    DataCopyExtParams copy;
    copy.blockCount = c.blocks;
    copy.blockLen = c.length;
    copy.srcStride = c.gm_stride;
    copy.dstStride = c.ub_stride;
    DataCopyPadExtParams<T> pad;
    pad.isPad = c.is_pad != 0;
    pad.leftPadding = c.left;
    pad.rightPadding = c.right;
    pad.paddingValue = static_cast<T>(9);
    DataCopyPad(local, Global<T>(x), copy, pad);
    Sync<HardEvent::MTE2_MTE3>();
    DataCopy(Global<T>(y), local, c.out_elements);
}
MOEGRAD_HOSTMODEL_KERNEL_AS(pad_in_f32, pad_in<float>)
MOEGRAD_HOSTMODEL_KERNEL_AS(pad_in_f16, pad_in<half>)

// One padded store out of a buffer that was loaded whole.
void pad_out(GM_ADDR x, GM_ADDR y, PadCase c)
{
    TPipe pipe;
    TBuf<TPosition::VECOUT> buffer;
    pipe.InitBuffer(buffer, c.out_elements * sizeof(float));
    LocalTensor<float> local = buffer.Get<float>();
    DataCopy(local, Global<float>(x), c.out_elements);
    Sync<HardEvent::MTE2_MTE3>();
    DataCopyExtParams copy;
    copy.blockCount = c.blocks;
    copy.blockLen = c.length;
    copy.srcStride = c.ub_stride;
    copy.dstStride = c.gm_stride;
    DataCopyPad(Global<float>(y), local, copy);
}
MOEGRAD_HOSTMODEL_KERNEL(pad_out)

// Strided DataCopy in 32-byte units: every second block of x, then back with a gap.
void strided(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    LocalTensor<float> local = buffer.Get<float>();
    DataCopy(local, Global<float>(x), {4, 1, 1, 1});
    Sync<HardEvent::MTE2_MTE3>();
    DataCopy(Global<float>(y), local, {4, 1, 1, 0});
}
MOEGRAD_HOSTMODEL_KERNEL(strided)

// UB to UB, count and strided.
void inside(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TBuf<> from_buffer;
    TBuf<> to_buffer;
    pipe.InitBuffer(from_buffer, 256);
    pipe.InitBuffer(to_buffer, 256);
    LocalTensor<float> from = from_buffer.Get<float>();
    LocalTensor<float> to = to_buffer.Get<float>();
    DataCopy(from, Global<float>(x), 64);
    Sync<HardEvent::MTE2_V>();
    DataCopy(to, from, 64);
    PipeBarrier<PIPE_V>();
    DataCopy(to[8], from, {2, 1, 1, 0});
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<float>(y), to, 64);
}
MOEGRAD_HOSTMODEL_KERNEL(inside)

// y = 2 x over rows of any width, several rows a move at a 32-byte pitch in UB. `pitch_wrong` forgets the pitch.
struct Rows {
    int64_t rows;
    int64_t width;
    int32_t rows_per_move;
    int32_t fault;  // 1: compute on unpitched rows; 2: one element too many stored; 3: one row too few
};

template <typename T>
void ragged_rows(GM_ADDR x, GM_ADDR y, Rows p)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in_queue;
    TQue<TPosition::VECOUT, 1> out_queue;
    const int32_t row_bytes = static_cast<int32_t>(p.width * sizeof(T));
    const int32_t pitch = (row_bytes + 31) / 32 * 32;
    pipe.InitBuffer(in_queue, 2, pitch * p.rows_per_move);
    pipe.InitBuffer(out_queue, 2, pitch * p.rows_per_move);
    const int64_t blocks = GetBlockNum();
    const int64_t per_core = (p.rows + blocks - 1) / blocks;
    const int64_t begin = per_core * GetBlockIdx();
    const int64_t end = begin + per_core < p.rows ? begin + per_core : p.rows;
    for (int64_t row = begin; row < end; row += p.rows_per_move) {
        const int64_t rest = end - row;
        const int32_t count = static_cast<int32_t>(rest < p.rows_per_move ? rest : p.rows_per_move);
        LocalTensor<T> in = in_queue.AllocTensor<T>();
        DataCopyExtParams copy(static_cast<uint16_t>(count), static_cast<uint32_t>(row_bytes), 0, 0, 0);
        DataCopyPad(in, Global<T>(x)[row * p.width], copy, DataCopyPadExtParams<T>(false, 0, 0, 0));
        in_queue.EnQue(in);
        in = in_queue.DeQue<T>();
        LocalTensor<T> out = out_queue.AllocTensor<T>();
        const int32_t elements = p.fault == 1 ? static_cast<int32_t>(p.width) * count
                                              : pitch / static_cast<int32_t>(sizeof(T)) * count;
        Adds(out, in, static_cast<T>(1), elements);
        out_queue.EnQue(out);
        in_queue.FreeTensor(in);
        out = out_queue.DeQue<T>();
        DataCopyExtParams back = copy;
        if (p.fault == 2) {
            back.blockLen += sizeof(T);
        }
        if (p.fault == 3 && count > 1) {
            back.blockCount = count - 1;
        }
        DataCopyPad(Global<T>(y)[row * p.width], out, back);
        out_queue.FreeTensor(out);
    }
}
MOEGRAD_HOSTMODEL_KERNEL_AS(ragged_rows_f32, ragged_rows<float>)
MOEGRAD_HOSTMODEL_KERNEL_AS(ragged_rows_f16, ragged_rows<half>)

// y = x through a binding of both positions; bf16 passes as it is.
void through_binding(GM_ADDR x, GM_ADDR y, int32_t count, int32_t tile)
{
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 2, tile * sizeof(bfloat16_t));
    for (int32_t from = 0; from < count; from += tile) {
        const uint32_t n = count - from < tile ? count - from : tile;
        const DataCopyExtParams copy{1, static_cast<uint32_t>(n * sizeof(bfloat16_t)), 0, 0, 0};
        LocalTensor<bfloat16_t> t = queue.AllocTensor<bfloat16_t>();
        DataCopyPad(t, Global<bfloat16_t>(x)[from], copy, {false, 0, 0, 0});
        queue.EnQue(t);
        t = queue.DeQue<bfloat16_t>();
        DataCopyPad(Global<bfloat16_t>(y)[from], t, copy);
        queue.FreeTensor(t);
    }
}
MOEGRAD_HOSTMODEL_KERNEL(through_binding)

// Depth 2: two loads ahead; a VECCALC queue in the middle; in-place overloads.
void deep_queues(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 2> in_queue;
    TQue<TPosition::VECCALC, 1> calc_queue;
    TQue<TPosition::VECOUT, 0> out_queue;
    pipe.InitBuffer(in_queue, 2, 256);
    pipe.InitBuffer(calc_queue, 1, 256);
    pipe.InitBuffer(out_queue, 1, 256);
    for (int32_t from = 0; from < 256; from += 128) {
        for (int32_t i = 0; i < 2; ++i) {
            LocalTensor<float> in = in_queue.AllocTensor<float>();
            DataCopy(in, Global<float>(x)[from + 64 * i], 64);
            in_queue.EnQue(in);
        }
        for (int32_t i = 0; i < 2; ++i) {
            LocalTensor<float> in = in_queue.DeQue<float>();
            LocalTensor<float> calc = calc_queue.AllocTensor<float>();
            Muls(calc, in, 3.0f, 64);
            calc_queue.EnQue(calc);
            in_queue.FreeTensor(in);
            calc = calc_queue.DeQue<float>();
            LocalTensor<float> out;
            out_queue.AllocTensor(out);
            Adds(out, calc, 1.0f, 64);
            out_queue.EnQue(out);
            calc_queue.FreeTensor(calc);
            out_queue.DeQue(out);
            DataCopy(Global<float>(y)[from + 64 * i], out, 64);
            out_queue.FreeTensor(out);
        }
    }
}
MOEGRAD_HOSTMODEL_KERNEL(deep_queues)

// Tensors at hand-chosen addresses, no TPipe.
void static_tensors(GM_ADDR x, GM_ADDR y, int32_t barrier)
{
    InitSocState();
    LocalTensor<float> in(TPosition::VECIN, 0, 64);
    LocalTensor<float> out(TPosition::VECOUT, 256, 64);
    DataCopy(in, Global<float>(x), 64);
    Sync<HardEvent::MTE2_V>();
    Adds(out, in, 1.0f, 64);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<float>(y), out, 64);
    if (barrier != 0) {
        PipeBarrier<PIPE_ALL>();
    }
}
MOEGRAD_HOSTMODEL_KERNEL(static_tensors)

// Zero fill of all of y by the library, then every core's own part over it; soft synchronisation between the two.
void fill_and_meet(GM_ADDR x, GM_ADDR y, GM_ADDR sync, int32_t count, int32_t meet)
{
    GlobalTensor<float> gy = Global<float>(y);
    if (GetBlockIdx() == 0) {
        Fill(gy, count, 0.0f);
    }
    TPipe pipe;
    TBuf<> buffer;
    TBuf<> sync_buffer;
    pipe.InitBuffer(buffer, 256);
    pipe.InitBuffer(sync_buffer, 32 * 48);
    if (meet != 0) {
        SyncAll(Global<int32_t>(sync), sync_buffer.Get<int32_t>());
    }
    LocalTensor<float> local = buffer.Get<float>();
    DataCopy(local, Global<float>(x)[GetBlockIdx() * 8], 8);
    Sync<HardEvent::MTE2_MTE3>();
    DataCopy(gy[GetBlockIdx() * 16], local, 8);
}
MOEGRAD_HOSTMODEL_KERNEL(fill_and_meet)

// Workspace that is read before it was written, and a stale cache line after another core's store.
void through_workspace(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    struct Choice {
        int32_t fault;
        int32_t unused;
    };
    GET_TILING_DATA_WITH_STRUCT(Choice, choice, tiling);
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 64);
    LocalTensor<float> local = buffer.Get<float>();
    GlobalTensor<float> ws = Global<float>(workspace);
    if (choice.fault == 2) {
        const float early = ws.GetValue(8 * (1 - GetBlockIdx()));
        (void)early;
    }
    DataCopy(local, Global<float>(x)[GetBlockIdx() * 8], 8);
    Sync<HardEvent::MTE2_MTE3>();
    if (choice.fault != 1) {
        DataCopy(ws[GetBlockIdx() * 8], local, 8);
    }
    SyncAll();
    const int64_t other = 8 * (1 - GetBlockIdx());
    if (choice.fault == 3) {
        DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(ws);
    }
    const float first = ws.GetValue(other);
    DataCopy(local, ws[other], 8);
    Sync<HardEvent::MTE2_V>();
    Adds(local, local, first, 8);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<float>(y)[GetBlockIdx() * 8], local, 8);
}
MOEGRAD_HOSTMODEL_KERNEL(through_workspace)

// An optional input that may be absent, and a tiling key.
void optional_input(GM_ADDR x, GM_ADDR bias, GM_ADDR y)
{
    GlobalTensor<float> gy = Global<float>(y);
    float value = Global<float>(x).GetValue(0);
    if (bias != nullptr) {
        value += Global<float>(bias).GetValue(0);
    }
    if (TILING_KEY_IS(5)) {
        value *= 10;
    } else if (TILING_KEY_IS(6)) {
        value *= 100;
    }
    gy.SetValue(0, value);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gy);
}
MOEGRAD_HOSTMODEL_KERNEL(optional_input)

// A loop with flags preset before and drained after, for any number of rounds; `skip` leaves the last wait out.
void balanced(GM_ADDR x, GM_ADDR y, int32_t rounds, int32_t skip)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 64);
    LocalTensor<float> local = buffer.Get<float>();
    SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID2);
    for (int32_t i = 0; i < rounds; ++i) {
        WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID2);
        DataCopy(local, Global<float>(x)[8 * i], 8);
        SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
        WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID3);
        DataCopy(Global<float>(y)[8 * i], local, 8);
        SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID2);
    }
    if (skip == 0) {
        WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID2);
    }
}
MOEGRAD_HOSTMODEL_KERNEL(balanced)

// Two accidents of overlap: the destination eight floats after the source, and a work tensor that is too small.
void overlap(GM_ADDR x, GM_ADDR y, int32_t shift)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 1024);
    LocalTensor<float> local = buffer.Get<float>();
    Duplicate(local, 0.0f, 256);
    PipeBarrier<PIPE_ALL>();
    DataCopy(local, Global<float>(x), 128);
    Sync<HardEvent::MTE2_V>();
    Adds(local[shift], local, 1.0f, 120);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<float>(y), local[shift], 120);
}
MOEGRAD_HOSTMODEL_KERNEL(overlap)

// Two fills from the same scratch, with or without the flag that lets the second value wait for the first's stores;
// then a buffer over the scratch, loaded with or without waiting for those stores.
void two_fills(GM_ADDR x, GM_ADDR y, int32_t wait_v, int32_t wait_mte2)
{
    GlobalTensor<float> gy = Global<float>(y);
    GlobalTensor<float> second = gy[1024];
    Fill(gy, 1024, 1.0f);
    if (wait_v != 0) {
        Sync<HardEvent::MTE3_V>();
    }
    Fill(second, 1024, 2.0f);
    if (wait_mte2 != 0) {
        Sync<HardEvent::MTE3_MTE2>();
    }
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 8192);
    LocalTensor<float> local = buffer.Get<float>();
    DataCopy(local, Global<float>(x), 2048);
    Sync<HardEvent::MTE2_MTE3>();
    DataCopy(gy[2048], local, 2048);
}
MOEGRAD_HOSTMODEL_KERNEL(two_fills)

// Core 0 writes one float through its cache, core 1 stores the next eight bytes through MTE3.
void mixed_line(GM_ADDR x, GM_ADDR y, int32_t apart)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 64);
    GlobalTensor<float> gy = Global<float>(y);
    if (GetBlockIdx() == 0) {
        gy.SetValue(0, 5.0f);
        DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gy);
    } else {
        LocalTensor<float> local = buffer.Get<float>();
        DataCopy(local, Global<float>(x), 8);
        Sync<HardEvent::MTE2_MTE3>();
        DataCopyPad(gy[apart], local, {1, 8, 0, 0, 0});
    }
}
MOEGRAD_HOSTMODEL_KERNEL(mixed_line)

// Two rounds through one queue buffer; unless `full`, the second loads half of what it computes on.
void stale_buffer(GM_ADDR x, GM_ADDR y, int32_t full)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in_queue;
    TQue<TPosition::VECOUT, 1> out_queue;
    pipe.InitBuffer(in_queue, 1, 256);
    pipe.InitBuffer(out_queue, 1, 256);
    for (int32_t round = 0; round < 2; ++round) {
        LocalTensor<float> in = in_queue.AllocTensor<float>();
        DataCopy(in, Global<float>(x)[64 * round], round == 0 || full != 0 ? 64 : 32);
        in_queue.EnQue(in);
        in = in_queue.DeQue<float>();
        LocalTensor<float> out = out_queue.AllocTensor<float>();
        Adds(out, in, 1.0f, 64);
        out_queue.EnQue(out);
        in_queue.FreeTensor(in);
        out = out_queue.DeQue<float>();
        DataCopy(Global<float>(y)[64 * round], out, 64);
        out_queue.FreeTensor(out);
    }
}
MOEGRAD_HOSTMODEL_KERNEL(stale_buffer)
