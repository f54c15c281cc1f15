// Rows 20 of the table in docs/hostmodel.md: what is left behind, and several cores.
// A template has the mistake as <true> and is mended as <false>; unless stated otherwise it doubles N floats: y = 2 x.
#include "common.h"

using namespace common;

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
TWINS(counter_left)

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
