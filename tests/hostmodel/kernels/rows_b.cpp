// Rows 10 to 20 of the table in docs/hostmodel.md. <true> has the mistake, <false> is mended.
// Unless stated otherwise a kernel doubles N floats: y = 2 x.
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t N = 1024;
constexpr uint32_t BYTES = N * sizeof(float);

#define TWINS(name)                                       \
    MOEGRAD_HOSTMODEL_KERNEL_AS(name##_faulty, name<true>) \
    MOEGRAD_HOSTMODEL_KERNEL_AS(name##_mended, name<false>)

struct Hand {
    TPipe pipe;
    TBuf<TPosition::VECCALC> in_buf;
    TBuf<TPosition::VECCALC> out_buf;
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    LocalTensor<float> in;
    LocalTensor<float> out;

    Hand(GM_ADDR x, GM_ADDR y)
    {
        gx.SetGlobalBuffer((__gm__ float*)x);
        gy.SetGlobalBuffer((__gm__ float*)y);
        pipe.InitBuffer(in_buf, BYTES);
        pipe.InitBuffer(out_buf, BYTES);
        in = in_buf.Get<float>();
        out = out_buf.Get<float>();
    }
    template <HardEvent event>
    void Sync(int32_t id = 0)
    {
        SetFlag<event>(id);
        WaitFlag<event>(id);
    }
    void Double()
    {
        DataCopy(in, gx, N);
        Sync<HardEvent::MTE2_V>();
        Muls(out, in, 2.0f, N);
        Sync<HardEvent::V_MTE3>();
    }
    void All()
    {
        Double();
        DataCopy(gy, out, N);
    }
};

// ---- 10 and 11: events ----

enum class Fault {
    kNone, kSetTwice, kNoSet, kRange, kReserved, kLeft, kClash, kNotAllocated, kFetched, kFetchedByQueue
};

template <Fault fault>
void events(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.All();
    constexpr HardEvent kEvent = HardEvent::MTE3_V;
    if (fault == Fault::kSetTwice) {
        SetFlag<kEvent>(EVENT_ID1);
        SetFlag<kEvent>(EVENT_ID1);
        WaitFlag<kEvent>(EVENT_ID1);
    } else if (fault == Fault::kNoSet) {
        SetFlag<kEvent>(EVENT_ID1);
        WaitFlag<kEvent>(EVENT_ID2);
        WaitFlag<kEvent>(EVENT_ID1);
    } else if (fault == Fault::kRange) {
        h.Sync<kEvent>(8);
    } else if (fault == Fault::kReserved) {
        h.Sync<kEvent>(7);
    } else if (fault == Fault::kLeft) {
        SetFlag<kEvent>(EVENT_ID1);
    } else if (fault == Fault::kClash) {
        TQue<QuePosition::VECOUT, 1> queue;
        h.pipe.InitBuffer(queue, 1, 32);
        LocalTensor<float> t = queue.AllocTensor<float>();
        queue.FreeTensor(t);
        h.Sync<kEvent>(0);  // the queue holds MTE3_V id 0 until its buffer is allocated again
    } else if (fault == Fault::kNotAllocated) {
        const TEventID id = h.pipe.AllocEventID<kEvent>();
        h.pipe.ReleaseEventID<kEvent>(id);
        h.pipe.ReleaseEventID<kEvent>(id);
    } else if (fault == Fault::kFetched) {
        const auto first = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
        SetFlag<kEvent>(first);
        const auto second = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
        SetFlag<kEvent>(second);
        WaitFlag<kEvent>(first);
    } else if (fault == Fault::kFetchedByQueue) {
        const TEventID id = h.pipe.FetchEventID(HardEvent::MTE3_V);
        SetFlag<kEvent>(id);
        TQue<QuePosition::VECOUT, 1> queue;
        h.pipe.InitBuffer(queue, 1, 32);
        LocalTensor<float> t = queue.AllocTensor<float>();
        queue.FreeTensor(t);
        t = queue.AllocTensor<float>();
        queue.FreeTensor(t);
    } else {
        const TEventID first = h.pipe.AllocEventID<kEvent>();
        SetFlag<kEvent>(first);
        const TEventID second = h.pipe.AllocEventID<kEvent>();
        SetFlag<kEvent>(second);
        WaitFlag<kEvent>(first);
        WaitFlag<kEvent>(second);
        h.pipe.ReleaseEventID<kEvent>(first);
        h.pipe.ReleaseEventID<kEvent>(second);
    }
}
MOEGRAD_HOSTMODEL_KERNEL_AS(events_mended, events<Fault::kNone>)
MOEGRAD_HOSTMODEL_KERNEL_AS(set_twice_faulty, events<Fault::kSetTwice>)
MOEGRAD_HOSTMODEL_KERNEL_AS(wait_without_set_faulty, events<Fault::kNoSet>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_range_faulty, events<Fault::kRange>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_reserved_faulty, events<Fault::kReserved>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_left_faulty, events<Fault::kLeft>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_clash_faulty, events<Fault::kClash>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_not_allocated_faulty, events<Fault::kNotAllocated>)
MOEGRAD_HOSTMODEL_KERNEL_AS(fetched_twice_faulty, events<Fault::kFetched>)
MOEGRAD_HOSTMODEL_KERNEL_AS(fetched_by_queue_faulty, events<Fault::kFetchedByQueue>)

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
            SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
            WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
            Muls(row, row, 2.0f, width);
        } else {
            Duplicate(row, 0.0f, width);
        }
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        DataCopy(gy[r * width], row, width);
        SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
        WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
        SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
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
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
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

// ---- 15 and 16: repeats, masks, strides ----

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

// ---- 19: a rounding mode that the table has not ----

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
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(to, from, kFaulty ? RoundMode::CAST_NONE : RoundMode::CAST_RINT, N);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(gy, to, N);
}
TWINS(to_bfloat16)

// ---- 20: what is left behind, and several cores ----

template <bool kFaulty>
void atomic_left(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.All();
    SetAtomicAdd<float>();
    if (!kFaulty) {
        SetAtomicNone();
    }
}
TWINS(atomic_left)

template <bool kFaulty>
void counter_left(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.All();
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(0, N);
    Muls<float, false>(h.out, h.in, 2.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    if (!kFaulty) {
        SetMaskNorm();
        ResetMask();
    }
}
// MTE3 reads h.out while V rewrites it with the same values: order it.
template <bool kFaulty>
void counter_left_ordered(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(0, N);
    Muls<float, false>(h.out, h.in, 2.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    if (!kFaulty) {
        SetMaskNorm();
        ResetMask();
    }
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy, h.out, N);
}
TWINS(counter_left_ordered)

// Every core writes its part; then core 0 rewrites the first part of core 1 as 3 x. Needs SyncAll.
template <bool kSync, bool kMix>
void cores_meet(GM_ADDR x, GM_ADDR y)
{
    if (kMix) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    }
    Hand h(x, y);
    const int32_t part = N / static_cast<int32_t>(GetBlockNum());
    const int32_t from = part * static_cast<int32_t>(GetBlockIdx());
    DataCopy(h.in, h.gx[from], part);
    h.Sync<HardEvent::MTE2_V>();
    Muls(h.out, h.in, 2.0f, part);
    h.Sync<HardEvent::V_MTE3>();
    DataCopy(h.gy[from], h.out, part);
    if (kSync) {
        SyncAll();
    }
    if (GetBlockIdx() == 0) {
        h.Sync<HardEvent::MTE3_V>();
        h.Sync<HardEvent::V_MTE2>();
        DataCopy(h.in, h.gy[part], 8);
        h.Sync<HardEvent::MTE2_V>();
        Muls(h.out, h.in, 1.5f, 8);
        h.Sync<HardEvent::V_MTE3>();
        DataCopy(h.gy[part], h.out, 8);
    }
}
MOEGRAD_HOSTMODEL_KERNEL_AS(cores_meet_mended, (cores_meet<true, true>))
MOEGRAD_HOSTMODEL_KERNEL_AS(cores_meet_faulty, (cores_meet<false, true>))
MOEGRAD_HOSTMODEL_KERNEL_AS(vector_only_faulty, (cores_meet<true, false>))

extern "C" __global__ __mix__(0, 1) void declared_mix(GM_ADDR x, GM_ADDR y) { cores_meet<true, false>(x, y); }
MOEGRAD_HOSTMODEL_KERNEL(declared_mix)

// The last core leaves before the meeting.
template <bool kFaulty>
void one_missing(GM_ADDR x, GM_ADDR y)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    Hand h(x, y);
    if (GetBlockIdx() == 0) {
        h.All();
    }
    if (!kFaulty || GetBlockIdx() + 1 < GetBlockNum()) {
        SyncAll();
    }
}
TWINS(one_missing)

// Each core stores one float of y by way of the scalar cache.
template <bool kFaulty>
void scalar_stores(GM_ADDR x, GM_ADDR y)
{
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    gx.SetGlobalBuffer((__gm__ float*)x);
    gy.SetGlobalBuffer((__gm__ float*)y);
    const int64_t at = GetBlockIdx() * (kFaulty ? 1 : 16);
    gy.SetValue(at, gx.GetValue(at) * 2);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gy[at]);
}
TWINS(scalar_stores)

template <bool kFaulty>
void unflushed(GM_ADDR x, GM_ADDR y)
{
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    gx.SetGlobalBuffer((__gm__ float*)x);
    gy.SetGlobalBuffer((__gm__ float*)y);
    gy.SetValue(0, gx.GetValue(0) * 2);
    if (!kFaulty) {
        DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gy);
    }
}
TWINS(unflushed)

template <bool kFaulty>
void unwritten(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.Double();
    DataCopy(h.gy, h.out, kFaulty ? N - 8 : N);
}
TWINS(unwritten)

template <bool kFaulty>
void atomic_add(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    DataCopy(h.in, h.gx, N);
    h.Sync<HardEvent::MTE2_V>();
    if (!kFaulty) {
        Duplicate(h.out, 0.0f, N);
        h.Sync<HardEvent::V_MTE3>();
        DataCopy(h.gy, h.out, N);
        PipeBarrier<PIPE_MTE3>();
    }
    h.Sync<HardEvent::MTE2_MTE3>();
    SetAtomicAdd<float>();
    DataCopy(h.gy, h.in, N);
    DataCopy(h.gy, h.in, N);
    SetAtomicNone();
}
TWINS(atomic_add)
