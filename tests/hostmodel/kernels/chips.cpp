// What differs between the chips, and 16-bit reductions that saturate on the way.
#include "common.h"

using namespace common;

// y = (x + 1) * 2 without a barrier between the two: in order by hardware on 3510, by automatic sync on 2201.
extern "C" __global__ __vector__ __aicore__ void two_steps(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    LocalTensor<float> t = buffer.Get<float>();
    DataCopy(t, Global<float>(x), 64);
    Sync<HardEvent::MTE2_V>();
    Adds(t, t, 1.0f, 64);
    Muls(t, t, 2.0f, 64);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<float>(y), t, 64);
}
MOEGRAD_HOSTMODEL_KERNEL(two_steps)

// A zero count is a no-op on 2201 and not safe on 3510.
void zero_count(GM_ADDR x, GM_ADDR y, int32_t count)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    LocalTensor<float> t = buffer.Get<float>();
    DataCopy(t, Global<float>(x), 64);
    Sync<HardEvent::MTE2_V>();
    Adds(t, t, 1.0f, count);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<float>(y), t, 64);
}
MOEGRAD_HOSTMODEL_KERNEL(zero_count)

// y[0] = ReduceSum(x) with a work tensor of 32 bytes.
void small_work(GM_ADDR x, GM_ADDR y, int32_t count)
{
    TPipe pipe;
    TBuf<> buffer;
    TBuf<> work;
    pipe.InitBuffer(buffer, 8192);
    pipe.InitBuffer(work, 32);
    LocalTensor<float> t = buffer.Get<float>();
    DataCopy(t, Global<float>(x), count);
    Sync<HardEvent::MTE2_V>();
    ReduceSum(t, t, work.Get<float>(), count);
    Sync<HardEvent::V_MTE3>();
    DataCopyPad(Global<float>(y), t, {1, 4, 0, 0, 0});
}
MOEGRAD_HOSTMODEL_KERNEL(small_work)

// y[0] = a sum in half whose partial sums leave the range.
void half_sum(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 512);
    LocalTensor<half> t = buffer.Get<half>();
    DataCopy(t, Global<half>(x), 128);
    Sync<HardEvent::MTE2_V>();
    WholeReduceSum(t[128], t, 128, 1, 1, 1, 8);
    Sync<HardEvent::V_MTE3>();
    DataCopyPad(Global<half>(y), t[128], {1, 2, 0, 0, 0});
}
MOEGRAD_HOSTMODEL_KERNEL(half_sum)

#if __NPU_ARCH__ == 3510
// bf16 arithmetic, half to bf16, compact padding: only here.
void only_950(GM_ADDR x, GM_ADDR y)
{
    TPipe pipe;
    TBuf<> buffer;
    TBuf<> wide;
    pipe.InitBuffer(buffer, 64);
    pipe.InitBuffer(wide, 64);
    LocalTensor<bfloat16_t> t = buffer.Get<bfloat16_t>();
    LocalTensor<half> h = wide.Get<half>();
    DataCopyPad<half, PaddingMode::Compact>(h, Global<half>(x), {2, 16, 0, 0, 0}, {false, 0, 0, 0});
    Sync<HardEvent::MTE2_V>();
    Cast(t, h, RoundMode::CAST_RINT, 16);
    Add(t, t, t, 16);
    Muls(t, t, static_cast<bfloat16_t>(0.5f), 16);
    Sync<HardEvent::V_MTE3>();
    DataCopy(Global<bfloat16_t>(y), t, 16);
}
MOEGRAD_HOSTMODEL_KERNEL(only_950)
#endif
