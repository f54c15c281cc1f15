// z = x + y over float vectors of any length, the work split over all cores, copies and compute overlapped.
// An ordinary Ascend C kernel: it knows nothing of the host model that runs it here.
#pragma once

#include "kernel_operator.h"

struct VectorAddTiling {
    int64_t length;
    int64_t per_core;  // a multiple of 8, so that every core starts on 32 bytes
    int64_t tile;
};

class VectorAdd {
public:
    __aicore__ inline void Init(AscendC::TPipe* pipe, GM_ADDR x, GM_ADDR y, GM_ADDR z, const VectorAddTiling& tiling)
    {
        const int64_t begin = tiling.per_core * AscendC::GetBlockIdx();
        const int64_t rest = tiling.length - begin;
        length_ = rest < tiling.per_core ? rest : tiling.per_core;
        tile_ = tiling.tile;
        if (length_ <= 0) {
            return;
        }
        x_.SetGlobalBuffer((__gm__ float*)x + begin, length_);
        y_.SetGlobalBuffer((__gm__ float*)y + begin, length_);
        z_.SetGlobalBuffer((__gm__ float*)z + begin, length_);
        const uint32_t bytes = static_cast<uint32_t>(tile_ * sizeof(float));
        pipe->InitBuffer(x_queue_, 2, bytes);
        pipe->InitBuffer(y_queue_, 2, bytes);
        pipe->InitBuffer(z_queue_, 2, bytes);
    }

    __aicore__ inline void Process()
    {
        for (int64_t from = 0; from < length_; from += tile_) {
            const int64_t rest = length_ - from;
            const uint32_t count = static_cast<uint32_t>(rest < tile_ ? rest : tile_);
            CopyIn(from, count);
            Compute(count);
            CopyOut(from, count);
        }
    }

private:
    __aicore__ inline AscendC::DataCopyExtParams OneBlock(uint32_t count) const
    {
        return {1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0};
    }

    __aicore__ inline void CopyIn(int64_t from, uint32_t count)
    {
        const AscendC::DataCopyPadExtParams<float> pad{false, 0, 0, 0};
        AscendC::LocalTensor<float> x = x_queue_.AllocTensor<float>();
        AscendC::LocalTensor<float> y = y_queue_.AllocTensor<float>();
        AscendC::DataCopyPad(x, x_[from], OneBlock(count), pad);
        AscendC::DataCopyPad(y, y_[from], OneBlock(count), pad);
        x_queue_.EnQue(x);
        y_queue_.EnQue(y);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<float> x = x_queue_.DeQue<float>();
        AscendC::LocalTensor<float> y = y_queue_.DeQue<float>();
        AscendC::LocalTensor<float> z = z_queue_.AllocTensor<float>();
        AscendC::Add(z, x, y, static_cast<int32_t>(count));
        z_queue_.EnQue(z);
        x_queue_.FreeTensor(x);
        y_queue_.FreeTensor(y);
    }

    __aicore__ inline void CopyOut(int64_t from, uint32_t count)
    {
        AscendC::LocalTensor<float> z = z_queue_.DeQue<float>();
        AscendC::DataCopyPad(z_[from], z, OneBlock(count));
        z_queue_.FreeTensor(z);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> x_queue_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> y_queue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> z_queue_;
    AscendC::GlobalTensor<float> x_;
    AscendC::GlobalTensor<float> y_;
    AscendC::GlobalTensor<float> z_;
    int64_t length_ = 0;
    int64_t tile_ = 0;
};

extern "C" __global__ __aicore__ void vector_add(GM_ADDR x, GM_ADDR y, GM_ADDR z, VectorAddTiling tiling)
{
    AscendC::TPipe pipe;
    VectorAdd op;
    op.Init(&pipe, x, y, z, tiling);
    op.Process();
}
