// Spellings of tutorials and older kernels, which must compile and run unchanged.
#include "kernel_operator.h"

using namespace AscendC;

constexpr int32_t BUFFER_NUM = 2;
constexpr int32_t TILE_LENGTH = 128;
constexpr int32_t TILES = 4;
constexpr int32_t BLOCK_LENGTH = TILES * TILE_LENGTH;

// z = x / 2 + y in half precision; each core has one stretch of BLOCK_LENGTH elements.
class KernelAdd {
public:
    __aicore__ inline KernelAdd() {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z)
    {
        ASSERT(GetBlockNum() != 0 && "at least one block");
        xGm.SetGlobalBuffer((__gm__ half *)x + BLOCK_LENGTH * GetBlockIdx(), BLOCK_LENGTH);
        yGm.SetGlobalBuffer((__gm__ half *)y + BLOCK_LENGTH * block_idx, BLOCK_LENGTH);
        zGm.SetGlobalBuffer((__gm__ half *)z + BLOCK_LENGTH * get_block_idx(), BLOCK_LENGTH);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, TILE_LENGTH * sizeof(half));
        pipe.InitBuffer(inQueueY, BUFFER_NUM, TILE_LENGTH * sizeof(half));
        pipe.InitBuffer(outQueueZ, BUFFER_NUM, TILE_LENGTH * sizeof(half));
        pipe.InitBuffer(tmpBuf, TILE_LENGTH * sizeof(half));
    }
    __aicore__ inline void Process()
    {
        for (int32_t i = 0; i < TILES; i++) {
            CopyIn(i);
            Compute(i);
            CopyOut(i);
        }
    }

private:
    __aicore__ inline void CopyIn(int32_t progress)
    {
        LocalTensor<half> xLocal = inQueueX.AllocTensor<half>();
        LocalTensor<half> yLocal = inQueueY.AllocTensor<half>();
        DataCopy(xLocal, xGm[progress * TILE_LENGTH], TILE_LENGTH);
        DataCopy(yLocal, yGm[progress * TILE_LENGTH], TILE_LENGTH);
        inQueueX.EnQue(xLocal);
        inQueueY.EnQue(yLocal);
    }
    __aicore__ inline void Compute(int32_t progress)
    {
        LocalTensor<half> xLocal = inQueueX.DeQue<half>();
        LocalTensor<half> yLocal = inQueueY.DeQue<half>();
        LocalTensor<half> zLocal = outQueueZ.AllocTensor<half>();
        LocalTensor<half> tmpLocal = tmpBuf.Get<half>();
        const half two = (half)2.0;
        uint64_t mask[2] = {UINT64_MAX, UINT64_MAX};
        SetMaskNorm();
        Muls(tmpLocal, xLocal, static_cast<half>(0.25), TILE_LENGTH);
        pipe_barrier(PIPE_V);
        Muls(tmpLocal, tmpLocal, two, mask, 1, {1, 1, DEFAULT_REPEAT_STRIDE, DEFAULT_REPEAT_STRIDE});
        PipeBarrier<PIPE_V>();
        Add(zLocal, tmpLocal, yLocal, (uint64_t)TILE_LENGTH, 1, {1, 1, 1, 8, 8, 8});
        outQueueZ.EnQue<half>(zLocal);
        inQueueX.FreeTensor(xLocal);
        inQueueY.FreeTensor(yLocal);
        if (GetBlockIdx() == 0 && progress < 0) {
            PRINTF("tile %d\n", progress);
            AscendC::printf("tile %d\n", progress);
            printf("tile %d\n", progress);
            DumpTensor(zLocal, 1, TILE_LENGTH);
        }
    }
    __aicore__ inline void CopyOut(int32_t progress)
    {
        LocalTensor<half> zLocal = outQueueZ.DeQue<half>();
        DataCopy(zGm[progress * TILE_LENGTH], zLocal, TILE_LENGTH);
        outQueueZ.FreeTensor(zLocal);
    }

    TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX, inQueueY;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueZ;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> tmpBuf;
    GlobalTensor<half> xGm, yGm, zGm;
};

extern "C" __global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z)
{
    if ASCEND_IS_AIC {
        return;
    }
    KernelAdd op;
    op.Init(x, y, z);
    op.Process();
    pipe_barrier(PIPE_ALL);
}
MOEGRAD_HOSTMODEL_KERNEL(add_custom)

#ifndef ASCENDC_CPU_DEBUG
void add_custom_do(uint32_t blockDim, void* l2ctrl, void* stream, uint8_t* x, uint8_t* y, uint8_t* z)
{
    add_custom<<<blockDim, l2ctrl, stream>>>(x, y, z);
}
#endif
#ifndef __CCE_KT_TEST__
void add_custom_launch(uint32_t blockDim, void* stream, uint8_t* x, uint8_t* y, uint8_t* z)
{
    add_custom<<<blockDim, nullptr, stream>>>(x, y, z);
}
#endif

// y = relu(x) for fewer than eight floats: the older structs of padded copies, flags in both spellings, a mask of bits.
extern "C" __global__ __aicore__ void short_row(__gm__ uint8_t* __restrict__ x, __gm__ uint8_t* __restrict__ y, uint32_t n)
{
    TPipe pipe;
    TBuf<QuePosition::VECCALC> inBuf, outBuf;
    pipe.InitBuffer(inBuf, 32);
    pipe.InitBuffer(outBuf, 32);
    LocalTensor<float> in = inBuf.Get<float>();
    LocalTensor<float> out = outBuf.Get<float>();
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x), n);
    yGm.SetGlobalBuffer((__gm__ float*)y, n);
    const uint32_t len = n * sizeof(float);
    DataCopyPadParams padParams{true, 0, (uint8_t)(8 - n), 0};
    DataCopyPad(in, xGm, DataCopyParams{1, (uint16_t)len, 0, 0}, padParams);
    event_t eventID = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_V));
    SetFlag<HardEvent::MTE2_V>(eventID);
    WaitFlag<HardEvent::MTE2_V>(eventID);
    uint64_t mask[2] = {(1ULL << n) - 1, 0};
    Relu(out, in, mask, 1, {1, 1, 8, 8});
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    DataCopyParams copyParams;
    copyParams.blockCount = 1;
    copyParams.blockLen = len;
    DataCopyPad(yGm, out, copyParams);
}
MOEGRAD_HOSTMODEL_KERNEL(short_row)

// The mask of the older spelling, and what the short row must not do.
extern "C" __global__ __aicore__ void masked_row(GM_ADDR x, GM_ADDR y, int32_t lanes)
{
    ASSERT(lanes > 0 && lanes <= 64);
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 256);
    LocalTensor<float> t = buf.Get<float>();
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, 64);
    yGm.SetGlobalBuffer((__gm__ float*)y, 64);
    DataCopy(t, xGm, 64);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    set_mask_norm();
    set_vector_mask(0, lanes == 64 ? UINT64_MAX : (1ULL << lanes) - 1);
    Muls<float, false>(t, t, 2.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    ResetMask();
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1);
    DataCopy(yGm, t, 64);
}
MOEGRAD_HOSTMODEL_KERNEL(masked_row)

// Reads a flag in global memory until it is -1; the last core sets nothing, and waits for the others.
extern "C" __global__ __mix__(0, 1) void wait_for_ever(GM_ADDR x)
{
    GlobalTensor<float> xGm;
    xGm.SetGlobalBuffer((__gm__ float*)x);
    if (GetBlockIdx() + 1 < GetBlockNum()) {
        while (xGm.GetValue(0) != -1) {
        }
    }
    SyncAll();
}
MOEGRAD_HOSTMODEL_KERNEL(wait_for_ever)
