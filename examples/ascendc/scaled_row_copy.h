// out[r, :] = weight[r] * rows[index[r], :] for bf16 rows of any width; an index of -1 gives a row of zeros.
// Computes in float and rounds once, to nearest even. Flags are placed by hand, two rows in flight.
#pragma once

#include "kernel_operator.h"

struct ScaledRowCopyTiling {
    int64_t rows;   // of index, weight and out
    int64_t width;  // elements of a row
    int64_t rows_per_core;
};

class ScaledRowCopy {
public:
    static constexpr int64_t kBlockRows = 128;  // indices and weights loaded at a time

    __aicore__ inline void Init(AscendC::TPipe* pipe, GM_ADDR rows, GM_ADDR index, GM_ADDR weight, GM_ADDR out,
                                const ScaledRowCopyTiling& tiling)
    {
        begin_ = tiling.rows_per_core * AscendC::GetBlockIdx();
        end_ = begin_ + tiling.rows_per_core < tiling.rows ? begin_ + tiling.rows_per_core : tiling.rows;
        width_ = tiling.width;
        rows_.SetGlobalBuffer((__gm__ bfloat16_t*)rows);
        index_.SetGlobalBuffer((__gm__ int32_t*)index, tiling.rows);
        weight_.SetGlobalBuffer((__gm__ float*)weight, tiling.rows);
        out_.SetGlobalBuffer((__gm__ bfloat16_t*)out, tiling.rows * tiling.width);
        const uint32_t row_bytes = static_cast<uint32_t>((width_ * sizeof(bfloat16_t) + 31) / 32 * 32);
        pipe->InitBuffer(index_buffer_, kBlockRows * sizeof(int32_t));
        pipe->InitBuffer(weight_buffer_, kBlockRows * sizeof(float));
        for (int32_t slot = 0; slot < 2; ++slot) {
            pipe->InitBuffer(row_buffer_[slot], row_bytes);
            pipe->InitBuffer(out_buffer_[slot], row_bytes);
        }
        pipe->InitBuffer(wide_buffer_, row_bytes * 2);
    }

    __aicore__ inline void Process()
    {
        using AscendC::HardEvent;
        for (int32_t slot = 0; slot < 2; ++slot) {
            AscendC::SetFlag<HardEvent::V_MTE2>(slot);
            AscendC::SetFlag<HardEvent::MTE3_V>(slot);
        }
        for (int64_t block = begin_; block < end_; block += kBlockRows) {
            const int64_t count = end_ - block < kBlockRows ? end_ - block : kBlockRows;
            LoadBlock(block, static_cast<uint32_t>(count));
            for (int64_t i = 0; i < count; ++i) {
                OneRow(block + i, static_cast<uint32_t>(i));
            }
        }
        for (int32_t slot = 0; slot < 2; ++slot) {
            AscendC::WaitFlag<HardEvent::V_MTE2>(slot);
            AscendC::WaitFlag<HardEvent::MTE3_V>(slot);
        }
    }

private:
    __aicore__ inline void LoadBlock(int64_t first, uint32_t count)
    {
        using AscendC::HardEvent;
        // The scalar reads of the block before must be over.
        AscendC::SetFlag<HardEvent::S_MTE2>(EVENT_ID0);
        AscendC::WaitFlag<HardEvent::S_MTE2>(EVENT_ID0);
        const AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(int32_t)), 0, 0, 0};
        AscendC::DataCopyPad(index_buffer_.Get<int32_t>(), index_[first], copy, {false, 0, 0, 0});
        AscendC::DataCopyPad(weight_buffer_.Get<float>(), weight_[first], copy, {false, 0, 0, 0});
        AscendC::SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
        AscendC::WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    }

    __aicore__ inline void OneRow(int64_t row, uint32_t place)
    {
        using AscendC::HardEvent;
        const int32_t slot = static_cast<int32_t>(place % 2);
        const int64_t source = index_buffer_.Get<int32_t>().GetValue(place);
        const float weight = weight_buffer_.Get<float>().GetValue(place);
        const int32_t count = static_cast<int32_t>(width_);
        AscendC::LocalTensor<bfloat16_t> in = row_buffer_[slot].Get<bfloat16_t>();
        AscendC::LocalTensor<bfloat16_t> result = out_buffer_[slot].Get<bfloat16_t>();
        AscendC::LocalTensor<float> wide = wide_buffer_.Get<float>();
        const AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(width_ * sizeof(bfloat16_t)), 0, 0, 0};

        AscendC::WaitFlag<HardEvent::V_MTE2>(slot);
        if (source >= 0) {
            AscendC::DataCopyPad(in, rows_[source * width_], copy, {false, 0, 0, 0});
        }
        AscendC::SetFlag<HardEvent::MTE2_V>(slot);
        AscendC::WaitFlag<HardEvent::MTE2_V>(slot);

        AscendC::WaitFlag<HardEvent::MTE3_V>(slot);
        AscendC::PipeBarrier<PIPE_V>();
        if (source >= 0) {
            AscendC::Cast(wide, in, AscendC::RoundMode::CAST_NONE, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Muls(wide, wide, weight, count);
        } else {
            AscendC::Duplicate(wide, 0.0f, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(result, wide, AscendC::RoundMode::CAST_RINT, count);
        AscendC::SetFlag<HardEvent::V_MTE2>(slot);
        AscendC::SetFlag<HardEvent::V_MTE3>(slot);
        AscendC::WaitFlag<HardEvent::V_MTE3>(slot);
        AscendC::DataCopyPad(out_[row * width_], result, copy);
        AscendC::SetFlag<HardEvent::MTE3_V>(slot);
    }

    AscendC::TBuf<AscendC::TPosition::VECCALC> index_buffer_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> weight_buffer_;
    AscendC::TBuf<AscendC::TPosition::VECIN> row_buffer_[2];
    AscendC::TBuf<AscendC::TPosition::VECOUT> out_buffer_[2];
    AscendC::TBuf<AscendC::TPosition::VECCALC> wide_buffer_;
    AscendC::GlobalTensor<bfloat16_t> rows_;
    AscendC::GlobalTensor<int32_t> index_;
    AscendC::GlobalTensor<float> weight_;
    AscendC::GlobalTensor<bfloat16_t> out_;
    int64_t begin_ = 0;
    int64_t end_ = 0;
    int64_t width_ = 0;
};

extern "C" __global__ __aicore__ void scaled_row_copy(GM_ADDR rows, GM_ADDR index, GM_ADDR weight, GM_ADDR out,
                                                      ScaledRowCopyTiling tiling)
{
    AscendC::TPipe pipe;
    ScaledRowCopy op;
    op.Init(&pipe, rows, index, weight, out, tiling);
    op.Process();
}
