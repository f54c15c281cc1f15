// What the kernels of these tests share.
#pragma once

#include "kernel_operator.h"

// Exports name<true> and name<false>: a kernel with a mistake, and its mended twin.
#define TWINS(name)                                       \
    MOEGRAD_HOSTMODEL_KERNEL_AS(name##_faulty, name<true>) \
    MOEGRAD_HOSTMODEL_KERNEL_AS(name##_mended, name<false>)

namespace common {

using namespace AscendC;

template <HardEvent event>
void Sync(int32_t id = 0)
{
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

template <typename T>
GlobalTensor<T> Global(GM_ADDR address)
{
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer((__gm__ T*)address);
    return tensor;
}

template <typename T>
void Load(const LocalTensor<T>& to, const GlobalTensor<T>& from, int32_t count)
{
    DataCopyPad(to, from, {1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0}, {false, 0, 0, 0});
}

template <typename T>
void Store(const GlobalTensor<T>& to, const LocalTensor<T>& from, int32_t count)
{
    DataCopyPad(to, from, {1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0});
}

constexpr int32_t N = 1024;
constexpr uint32_t BYTES = N * sizeof(float);

// The parts of a kernel with hand-placed events that doubles N floats: y = 2 x.
struct Hand {
    TPipe pipe;
    TBuf<TPosition::VECCALC> in_buf;
    TBuf<TPosition::VECCALC> out_buf;
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    LocalTensor<float> in;
    LocalTensor<float> out;

    Hand(GM_ADDR x, GM_ADDR y, uint32_t in_bytes = BYTES, uint32_t out_bytes = BYTES)
        : gx(Global<float>(x)), gy(Global<float>(y))
    {
        pipe.InitBuffer(in_buf, in_bytes);
        pipe.InitBuffer(out_buf, out_bytes);
        in = in_buf.Get<float>();
        out = out_buf.Get<float>();
    }
    template <HardEvent event>
    void Sync(int32_t id = 0)
    {
        common::Sync<event>(id);
    }
    void Load(int32_t from, int32_t count) { DataCopy(in, gx[from], count); }
    void Store(int32_t to, int32_t count) { DataCopy(gy[to], out, count); }
    void Double()
    {
        Load(0, N);
        Sync<HardEvent::MTE2_V>();
        Muls(out, in, 2.0f, N);
        Sync<HardEvent::V_MTE3>();
    }
    void All()
    {
        Double();
        Store(0, N);
    }
};

}  // namespace common
