// Kernels in the manner of hand-written samples: softmax of rows, layer statistics, an embedding gradient with atomics.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

// Softmax of each row of 64 floats, eight rows at a time, by repeat-level instructions.
class KernelSoftmax {
public:
    __aicore__ inline KernelSoftmax() {}
    __aicore__ inline void Init(AscendC::TPipe* pipeIn, GM_ADDR x, GM_ADDR y, uint32_t rows)
    {
        pipe = pipeIn;
        this->rows = rows;
        xGm.SetGlobalBuffer((__gm__ float*)x, rows * 64);
        yGm.SetGlobalBuffer((__gm__ float*)y, rows * 64);
        pipe->InitBuffer(inQueueX, BUFFER_NUM, 8 * 64 * sizeof(float));
        pipe->InitBuffer(outQueueY, BUFFER_NUM, 8 * 64 * sizeof(float));
        pipe->InitBuffer(maxBuf, 64);
        pipe->InitBuffer(blockBuf, 8 * 32);
    }
    __aicore__ inline void Process()
    {
        for (uint32_t i = AscendC::GetBlockIdx(); i < rows / 8; i += AscendC::GetBlockNum()) {
            CopyIn(i);
            Compute();
            CopyOut(i);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t i)
    {
        AscendC::LocalTensor<float> xLocal = inQueueX.AllocTensor<float>();
        AscendC::DataCopy(xLocal, xGm[i * 512], 512);
        inQueueX.EnQue(xLocal);
    }
    __aicore__ inline void Compute()
    {
        AscendC::LocalTensor<float> xLocal = inQueueX.DeQue<float>();
        AscendC::LocalTensor<float> yLocal = outQueueY.AllocTensor<float>();
        AscendC::LocalTensor<float> rowMax = maxBuf.Get<float>();
        AscendC::LocalTensor<float> blocks = blockBuf.Get<float>();
        AscendC::WholeReduceMax<float>(rowMax, xLocal, 64, 8, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Brcb(blocks, rowMax, 1, {1, 8});
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(yLocal, xLocal, blocks, 64, 8, {1, 1, 0, 8, 8, 1});
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(yLocal, yLocal, 512);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::WholeReduceSum<float>(rowMax, yLocal, 64, 8, 1, 1, 8);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Brcb(blocks, rowMax, 1, {1, 8});
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(yLocal, yLocal, blocks, 64, 8, {1, 1, 0, 8, 8, 1});
        outQueueY.EnQue<float>(yLocal);
        inQueueX.FreeTensor(xLocal);
    }
    __aicore__ inline void CopyOut(uint32_t i)
    {
        AscendC::LocalTensor<float> yLocal = outQueueY.DeQue<float>();
        AscendC::DataCopy(yGm[i * 512], yLocal, 512);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe* pipe = nullptr;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> maxBuf, blockBuf;
    AscendC::GlobalTensor<float> xGm, yGm;
    uint32_t rows = 0;
};

extern "C" __global__ __aicore__ void softmax_custom(GM_ADDR x, GM_ADDR y, uint32_t rows)
{
    AscendC::TPipe pipe;
    KernelSoftmax op;
    op.Init(&pipe, x, y, rows);
    op.Process();
}
MOEGRAD_HOSTMODEL_KERNEL(softmax_custom)

// (x - mean) / sqrt(var + eps) of one half row a core, in float, with scalar round trips that automatic sync covers.
template <typename T>
__aicore__ inline void LayerStats(GM_ADDR x, GM_ADDR y, int32_t width)
{
    using namespace AscendC;
    TPipe pipe;
    TBuf<> halfBuf, floatBuf, squareBuf, workBuf;
    const uint32_t padded = AlignUp(width, 16);
    pipe.InitBuffer(halfBuf, padded * sizeof(T));
    pipe.InitBuffer(floatBuf, padded * sizeof(float));
    pipe.InitBuffer(squareBuf, padded * sizeof(float));
    pipe.InitBuffer(workBuf, padded * sizeof(float));
    GlobalTensor<T> gx, gy;
    gx.SetGlobalBuffer((__gm__ T*)x + width * GetBlockIdx(), width);
    gy.SetGlobalBuffer((__gm__ T*)y + width * GetBlockIdx(), width);
    LocalTensor<T> narrow = halfBuf.Get<T>();
    LocalTensor<float> wide = floatBuf.Get<float>(), square = squareBuf.Get<float>(), work = workBuf.Get<float>();
    DataCopyExtParams copyParams{1, static_cast<uint32_t>(width * sizeof(T)), 0, 0, 0};
    DataCopyPadExtParams<T> padParams{true, 0, static_cast<uint8_t>(padded - width), 0};
    DataCopyPad(narrow, gx, copyParams, padParams);
    event_t eventIn = static_cast<event_t>(pipe.FetchEventID(HardEvent::MTE2_V));
    SetFlag<HardEvent::MTE2_V>(eventIn);
    WaitFlag<HardEvent::MTE2_V>(eventIn);
    Cast(wide, narrow, RoundMode::CAST_NONE, width);
    ReduceSum<float>(square, wide, work, width);
    const float mean = square.GetValue(0) / width;
    Adds(wide, wide, -mean, width);
    Mul(square, wide, wide, width);
    ReduceSum<float>(square, square, work, width);
    const float variance = square.GetValue(0) / width;
    Duplicate(square, variance + 1e-5f, 8);
    Sqrt(square, square, 8);
    const float scale = 1.0f / square.GetValue(0);
    Muls(wide, wide, scale, width);
    Cast(narrow, wide, RoundMode::CAST_RINT, width);
    event_t eventOut = static_cast<event_t>(pipe.FetchEventID(HardEvent::V_MTE3));
    SetFlag<HardEvent::V_MTE3>(eventOut);
    WaitFlag<HardEvent::V_MTE3>(eventOut);
    DataCopyPad(gy, narrow, copyParams);
}

extern "C" __global__ __aicore__ void layer_stats(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    struct LayerTiling {
        int32_t width;
        int32_t unused;
    };
    REGISTER_TILING_DEFAULT(LayerTiling);
    GET_TILING_DATA(tilingData, tiling);
    GM_ADDR user = AscendC::GetUserWorkspace(workspace);
    (void)user;
    if (TILING_KEY_IS(1)) {
        LayerStats<half>(x, y, tilingData.width);
    } else if (TILING_KEY_IS(2)) {
        LayerStats<bfloat16_t>(x, y, tilingData.width);
    }
}
MOEGRAD_HOSTMODEL_KERNEL(layer_stats)

// table[index[i]] += grad[i]: rows added by all cores through atomic stores; core 0 zeroes first, SyncAll between.
extern "C" __global__ __mix__(0, 1) void embedding_grad(GM_ADDR grad, GM_ADDR index, GM_ADDR table, int32_t count,
                                                        int32_t entries)
{
    using namespace AscendC;
    GlobalTensor<float> g, t;
    GlobalTensor<int32_t> at;
    g.SetGlobalBuffer((__gm__ float*)grad, count * 16);
    t.SetGlobalBuffer((__gm__ float*)table, entries * 16);
    at.SetGlobalBuffer((__gm__ int32_t*)index, count);
    if (GetBlockIdx() == 0) {
        InitOutput<float>(t, entries * 16, 0.0f);
    }
    SyncAll();
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> rows;
    pipe.InitBuffer(rows, BUFFER_NUM, 64);
    SetAtomicAdd<float>();
    for (int64_t i = GetBlockIdx(); i < count; i += GetBlockNum()) {
        LocalTensor<float> row = rows.AllocTensor<float>();
        DataCopy(row, g[i * 16], 16);
        rows.EnQue(row);
        row = rows.DeQue<float>();
        DataCopy(t[static_cast<int64_t>(at.GetValue(i)) * 16], row, 16);
        rows.FreeTensor(row);
    }
    SetAtomicNone();
}
MOEGRAD_HOSTMODEL_KERNEL(embedding_grad)

// y = 1, 3, 5, ... by count.
extern "C" __global__ __vector__ void odd_numbers(GM_ADDR y, int32_t count)
{
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, AscendC::AlignUp(count * sizeof(int32_t), 32));
    AscendC::GlobalTensor<int32_t> gm;
    gm.SetGlobalBuffer((__gm__ int32_t*)y, count);
    auto local = queue.AllocTensor<int32_t>();
    AscendC::ArithProgression<int32_t>(local, 1, 2, count);
    queue.EnQue(local);
    local = queue.DeQue<int32_t>();
    AscendC::DataCopyPad(gm, local, {1, static_cast<uint32_t>(count * sizeof(int32_t)), 0, 0, 0});
    queue.FreeTensor(local);
}
MOEGRAD_HOSTMODEL_KERNEL(odd_numbers)
