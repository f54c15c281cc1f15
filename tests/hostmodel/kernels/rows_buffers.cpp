// Rows 1 to 9 of the table in docs/hostmodel.md: UB, order of pipes, queues.
// A template has the mistake as <true> and is mended as <false>; unless stated otherwise it doubles N floats: y = 2 x.
#include "common.h"

using namespace common;

template <bool kFaulty>
void misaligned(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    const int32_t split = kFaulty ? 500 : 504;
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, split);
    Muls(h.out[split], h.in[split], 2.0f, N - split);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(misaligned)

template <bool kFaulty>
void overflow(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    TBuf<TPosition::VECCALC> table;
    h.pipe.InitBuffer(table, kFaulty ? 188200 : 188160);
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(overflow)

template <bool kFaulty>
void past_buffer(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y, BYTES, kFaulty ? BYTES / 2 : BYTES);
    TBuf<TPosition::VECCALC> neighbour;
    h.pipe.InitBuffer(neighbour, BYTES);
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(past_buffer)

template <bool kFaulty>
void no_mte2_v(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, N);
    if (!kFaulty) {
        h.Sync<HardEvent::MTE2_V>();
    }
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(no_mte2_v)

template <bool kFaulty>
void no_v_mte3(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    if (!kFaulty) {
        h.Sync<HardEvent::V_MTE3>();
    }
    h.Store(0, N);
}
TWINS(no_v_mte3)

// One block of y = 2 x: V writes seven floats of it and S the eighth. S before the store does not mean V before it.
template <bool kFaulty>
void shared_block(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, 8);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, 7);
    h.Sync<HardEvent::MTE2_S>();
    h.out.SetValue(7, h.in.GetValue(7) * 2);
    h.Sync<HardEvent::S_MTE3>();
    if (!kFaulty) {
        h.Sync<HardEvent::V_MTE3>();
    }
    h.Store(0, 8);
}
TWINS(shared_block)

// Two halves through the same buffers. The flags of the second round are what is at stake.
template <bool kReload, bool kRewrite>
void two_rounds(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    for (int32_t from = 0; from < N; from += N / 2) {
        if (from != 0 && kReload) {
            WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
        }
        h.Load(from, N / 2);
        h.Sync<HardEvent::MTE2_V>();
        if (from != 0 && kRewrite) {
            WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
        }
        Muls(h.out, h.in, 2.0f, N / 2);
        if (from == 0 && kReload) {
            SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
        }
        h.Sync<HardEvent::V_MTE3>();
        h.Store(from, N / 2);
        if (from == 0 && kRewrite) {
            SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
        }
    }
}
MOEGRAD_HOSTMODEL_KERNEL_AS(no_mte3_v_faulty, (two_rounds<true, false>))
MOEGRAD_HOSTMODEL_KERNEL_AS(no_mte3_v_mended, (two_rounds<true, true>))
MOEGRAD_HOSTMODEL_KERNEL_AS(no_v_mte2_faulty, (two_rounds<false, true>))
MOEGRAD_HOSTMODEL_KERNEL_AS(no_v_mte2_mended, (two_rounds<true, true>))

// y = x, straight from load to store: automatic sync does not cover a pair of MTE pipes.
template <bool kFaulty>
void no_mte2_mte3(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, N);
    if (!kFaulty) {
        h.Sync<HardEvent::MTE2_MTE3>();
    }
    DataCopy(h.gy, h.in, N);
}
TWINS(no_mte2_mte3)

// y = x by way of a second load into the same buffer after the store.
template <bool kFaulty>
void no_mte3_mte2(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    for (int32_t from = 0; from < N; from += N / 2) {
        h.Load(from, N / 2);
        h.Sync<HardEvent::MTE2_MTE3>();
        DataCopy(h.gy[from], h.in, N / 2);
        if (!kFaulty) {
            h.Sync<HardEvent::MTE3_MTE2>();
        }
    }
}
TWINS(no_mte3_mte2)

// Scalar reads and writes, with and without their flags: clean under automatic sync either way.
template <bool kFaulty>
void scalar_touch(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    if (!kFaulty) {
        h.Sync<HardEvent::V_S>();
    }
    const float third = h.out.GetValue(3);
    h.out.SetValue(3, third);
    if (!kFaulty) {
        h.Sync<HardEvent::S_MTE3>();
    }
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(scalar_touch)

// Two vector instructions in a row, with and without the barrier.
template <bool kFaulty>
void vector_pair(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Adds(h.in, h.in, 1.0f, N);
    if (!kFaulty) {
        PipeBarrier<PIPE_V>();
    }
    Adds(h.in, h.in, -1.0f, N);
    if (!kFaulty) {
        PipeBarrier<PIPE_V>();
    }
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(vector_pair)

template <bool kFaulty>
void store_pair(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.in, N);
    if (!kFaulty) {
        PipeBarrier<PIPE_MTE3>();
    }
    h.Store(0, N);
}
TWINS(store_pair)

template <bool kFaulty>
void uninitialised(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Load(0, kFaulty ? N - 8 : N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(uninitialised)

// y[0] = sum of the first 13 floats of x; the load is padded to 16.
template <bool kFaulty>
void dummy_tail(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopyPad(h.in, h.gx, {1, 13 * sizeof(float), 0, 0, 0}, {false, 0, 0, 0});
    h.Sync<HardEvent::MTE2_V>();
    WholeReduceSum(h.out, h.in, kFaulty ? 16 : 13, 1, 1, 1, 8);
    h.Sync<HardEvent::V_MTE3>();
    DataCopyPad(h.gy, h.out, {1, sizeof(float), 0, 0, 0});
}
TWINS(dummy_tail)

// ---- queues ----

enum class Fault { kNone, kEnqueTwice, kDequeEmpty, kFreeTwice, kNotFreed, kAllocHang, kDepth, kForeign, kAfterFree };

template <Fault fault>
void queues(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> in_queue;
    TQue<QuePosition::VECOUT, 1> out_queue;
    pipe.InitBuffer(in_queue, 2, BYTES / 2);
    pipe.InitBuffer(out_queue, 2, BYTES / 2);
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    gx.SetGlobalBuffer((__gm__ float*)x, N);
    gy.SetGlobalBuffer((__gm__ float*)y, N);
    for (int32_t from = 0; from < N; from += N / 2) {
        const bool last = from != 0;
        LocalTensor<float> in = in_queue.AllocTensor<float>();
        DataCopy(in, gx[from], N / 2);
        in_queue.EnQue(in);
        if (last && fault == Fault::kEnqueTwice) {
            in_queue.EnQue(in);
        }
        if (last && fault == Fault::kDepth) {
            LocalTensor<float> second = in_queue.AllocTensor<float>();
            in_queue.EnQue(second);
            in_queue.FreeTensor(second);
        }
        in = in_queue.DeQue<float>();
        if (last && fault == Fault::kDequeEmpty) {
            in = in_queue.DeQue<float>();
        }
        LocalTensor<float> out = out_queue.AllocTensor<float>();
        if (last && fault == Fault::kAllocHang) {
            out = out_queue.AllocTensor<float>();
            out = out_queue.AllocTensor<float>();
        }
        Muls(out, in, 2.0f, N / 2);
        if (last && fault == Fault::kForeign) {
            in_queue.EnQue(out);
        }
        out_queue.EnQue(out);
        if (!(last && fault == Fault::kNotFreed)) {
            in_queue.FreeTensor(in);
        }
        if (last && fault == Fault::kFreeTwice) {
            in_queue.FreeTensor(in);
        }
        if (last && fault == Fault::kAfterFree) {
            Muls(in, in, 2.0f, N / 2);
        }
        out = out_queue.DeQue<float>();
        DataCopy(gy[from], out, N / 2);
        out_queue.FreeTensor(out);
    }
}
MOEGRAD_HOSTMODEL_KERNEL_AS(queues_mended, queues<Fault::kNone>)
MOEGRAD_HOSTMODEL_KERNEL_AS(enque_twice_faulty, queues<Fault::kEnqueTwice>)
MOEGRAD_HOSTMODEL_KERNEL_AS(deque_empty_faulty, queues<Fault::kDequeEmpty>)
MOEGRAD_HOSTMODEL_KERNEL_AS(free_twice_faulty, queues<Fault::kFreeTwice>)
MOEGRAD_HOSTMODEL_KERNEL_AS(not_freed_faulty, queues<Fault::kNotFreed>)
MOEGRAD_HOSTMODEL_KERNEL_AS(alloc_hang_faulty, queues<Fault::kAllocHang>)
MOEGRAD_HOSTMODEL_KERNEL_AS(queue_depth_faulty, queues<Fault::kDepth>)
MOEGRAD_HOSTMODEL_KERNEL_AS(foreign_tensor_faulty, queues<Fault::kForeign>)
MOEGRAD_HOSTMODEL_KERNEL_AS(use_after_free_faulty, queues<Fault::kAfterFree>)

// Nine buffers of VECIN live at once; eight are the limit.
template <bool kFaulty>
void nine_live(GM_ADDR x, GM_ADDR y)
{
    constexpr int32_t kQueues = kFaulty ? 9 : 8;
    Hand h(x, y);
    TQue<QuePosition::VECIN, 1> queues[kQueues];
    LocalTensor<float> held[kQueues];
    for (int32_t i = 0; i < kQueues; ++i) {
        h.pipe.InitBuffer(queues[i], 1, 64);
        held[i] = queues[i].template AllocTensor<float>();
    }
    for (int32_t i = 0; i < kQueues; ++i) {
        queues[i].FreeTensor(held[i]);
    }
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(nine_live)

template <bool kFaulty>
void many_buffers(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    TBuf<TPosition::VECCALC> extra[64];
    for (int32_t i = 0; i < (kFaulty ? 63 : 62); ++i) {
        h.pipe.InitBuffer(extra[i], 32);
    }
    h.Load(0, N);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, N);
    h.Sync<HardEvent::V_MTE3>();
    h.Store(0, N);
}
TWINS(many_buffers)
