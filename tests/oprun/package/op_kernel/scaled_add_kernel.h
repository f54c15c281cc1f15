// z = +-scale * x + shift (+ y), a core a range of elements. The class is compiled once for each DTYPE_X.
#pragma once

#include "kernel_operator.h"

#include "scaled_add_tiling.h"

#if ORIG_DTYPE_X == DT_FLOAT16
#define SCALED_ADD_WIDENS 1
#else
#define SCALED_ADD_WIDENS 0
#endif

class ScaledAdd {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR doubled, const ScaledAddTiling& tiling,
                                AscendC::TPipe* pipe)
    {
        begin_ = AscendC::GetBlockIdx() * tiling.perCore;
        end_ = begin_ + tiling.perCore < tiling.elements ? begin_ + tiling.perCore : tiling.elements;
        scale_ = static_cast<float>(tiling.negate != 0 ? -tiling.scale : tiling.scale);
        shift_ = static_cast<float>(tiling.shift);
        has_doubled_ = doubled != nullptr;
        x_.SetGlobalBuffer((__gm__ DTYPE_X*)x, tiling.elements);
        y_.SetGlobalBuffer((__gm__ DTYPE_X*)y, tiling.elements);
        z_.SetGlobalBuffer((__gm__ DTYPE_X*)z, tiling.elements);
        doubled_.SetGlobalBuffer((__gm__ DTYPE_X*)doubled, tiling.elements);
        pipe->InitBuffer(in_, 1, kTile * sizeof(DTYPE_X));
        pipe->InitBuffer(out_, 1, kTile * sizeof(DTYPE_X));
        pipe->InitBuffer(wide_, 2 * kTile * sizeof(float));
    }

    __aicore__ inline void Process(bool with_y)
    {
        for (int64_t at = begin_; at < end_; at += kTile) {
            const int32_t count = static_cast<int32_t>(end_ - at < kTile ? end_ - at : kTile);
            AscendC::LocalTensor<float> sum = wide_.Get<float>();
            AscendC::LocalTensor<float> term = sum[kTile];
            Load(sum, x_[at], count);
            AscendC::Muls(sum, sum, scale_, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Adds(sum, sum, shift_, count);
            AscendC::PipeBarrier<PIPE_V>();
            if (with_y) {
                Load(term, y_[at], count);
                AscendC::Add(sum, sum, term, count);
                AscendC::PipeBarrier<PIPE_V>();
            }
            Store(z_[at], sum, count);
            if (has_doubled_) {
                AscendC::Muls(sum, sum, 2.0f, count);
                AscendC::PipeBarrier<PIPE_V>();
                Store(doubled_[at], sum, count);
            }
        }
    }

private:
    static constexpr int64_t kTile = 64;

    __aicore__ inline void Load(const AscendC::LocalTensor<float>& to, const AscendC::GlobalTensor<DTYPE_X>& from,
                                int32_t count)
    {
        AscendC::LocalTensor<DTYPE_X> row = in_.AllocTensor<DTYPE_X>();
        const AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(DTYPE_X)), 0, 0, 0};
        AscendC::DataCopyPad(row, from, copy, AscendC::DataCopyPadExtParams<DTYPE_X>{false, 0, 0, DTYPE_X()});
        in_.EnQue(row);
        row = in_.DeQue<DTYPE_X>();
#if SCALED_ADD_WIDENS
        AscendC::Cast(to, row, AscendC::RoundMode::CAST_NONE, count);
#else
        AscendC::Adds(to, row, 0.0f, count);
#endif
        AscendC::PipeBarrier<PIPE_V>();
        in_.FreeTensor(row);
    }

    __aicore__ inline void Store(const AscendC::GlobalTensor<DTYPE_X>& to, const AscendC::LocalTensor<float>& from,
                                 int32_t count)
    {
        AscendC::LocalTensor<DTYPE_X> row = out_.AllocTensor<DTYPE_X>();
#if SCALED_ADD_WIDENS
        AscendC::Cast(row, from, AscendC::RoundMode::CAST_RINT, count);
#else
        AscendC::Adds(row, from, 0.0f, count);
#endif
        AscendC::PipeBarrier<PIPE_V>();
        out_.EnQue(row);
        row = out_.DeQue<DTYPE_X>();
        AscendC::DataCopyPad(to, row, {1, static_cast<uint32_t>(count * sizeof(DTYPE_X)), 0, 0, 0});
        out_.FreeTensor(row);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> in_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wide_;
    AscendC::GlobalTensor<DTYPE_X> x_;
    AscendC::GlobalTensor<DTYPE_X> y_;
    AscendC::GlobalTensor<DTYPE_X> z_;
    AscendC::GlobalTensor<DTYPE_X> doubled_;
    int64_t begin_;
    int64_t end_;
    float scale_;
    float shift_;
    bool has_doubled_;
};
