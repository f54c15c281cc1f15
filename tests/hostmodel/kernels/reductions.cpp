// Reductions for test_numerics.py, on both architectures.
#include "common.h"

using namespace common;

constexpr int32_t TILE = 8192;

// ---- reductions of `count` elements; results in y ----

enum Reduction { kBlock, kPair, kWhole, kSum, kSumMask, kMax, kWholeMax, kRepeatOld, kNewBlock, kNewRepeat, kNewPair };

template <typename T>
void reduce(GM_ADDR x, GM_ADDR y, int32_t count, int32_t kind, int32_t mask, int32_t results)
{
    TPipe pipe;
    TBuf<> x_buffer;
    TBuf<> t_buffer;
    TBuf<> y_buffer;
    pipe.InitBuffer(x_buffer, TILE * sizeof(T));
    pipe.InitBuffer(t_buffer, TILE * sizeof(T));
    pipe.InitBuffer(y_buffer, TILE * sizeof(T));
    LocalTensor<T> in = x_buffer.Get<T>();
    LocalTensor<T> tmp = t_buffer.Get<T>();
    LocalTensor<T> to = y_buffer.Get<T>();
    Load(in, Global<T>(x), count);
    Sync<HardEvent::MTE2_V>();
    Duplicate(to, static_cast<T>(-1), results);
    const int32_t repeat = count / (256 / static_cast<int32_t>(sizeof(T)));
    switch (kind) {
        case kBlock: BlockReduceSum(to, in, repeat, mask, 1, 1, 8); break;
        case kPair: PairReduceSum(to, in, repeat, mask, 1, 1, 8); break;
        case kWhole: WholeReduceSum(to, in, mask, repeat, 1, 1, 8); break;
        case kSum: ReduceSum(to, in, tmp, count); break;
        case kSumMask: ReduceSum(to, in, tmp, mask, repeat, 8); break;
        case kMax: ReduceMax(to, in, tmp, count, true); break;
        case kWholeMax: WholeReduceMax(to, in, mask, repeat, 1, 1, 8); break;
        case kRepeatOld: RepeatReduceSum(to, in, repeat, mask, 0, 1, 1, 8); break;
        case kNewBlock: ReduceDataBlock<ReduceType::SUM>(to, in, mask, repeat, 1, 1, 8); break;
        case kNewRepeat: ReduceRepeat<ReduceType::SUM>(to, in, mask, repeat, 1, 1, 8); break;
        case kNewPair: ReducePairElem<ReduceType::SUM>(to, in, mask, repeat, 1, 1, 8); break;
        default: break;
    }
    Sync<HardEvent::V_MTE3>();
    Store(Global<T>(y), to, results);
}
MOEGRAD_HOSTMODEL_KERNEL_AS(reduce_f32, reduce<float>)
MOEGRAD_HOSTMODEL_KERNEL_AS(reduce_f16, reduce<half>)

// y[0] = ReduceSum(x) through the scalar register, with no flag but automatic sync.
void sum_register(GM_ADDR x, GM_ADDR y, int32_t count)
{
    TPipe pipe;
    TBuf<> x_buffer;
    TBuf<> y_buffer;
    pipe.InitBuffer(x_buffer, TILE * sizeof(float));
    pipe.InitBuffer(y_buffer, TILE * sizeof(float));
    LocalTensor<float> in = x_buffer.Get<float>();
    LocalTensor<float> to = y_buffer.Get<float>();
    Load(in, Global<float>(x), count);
    Sync<HardEvent::MTE2_V>();
    ReduceSum(to, in, to, count);
    to.SetValue(8, GetReduceRepeatSumSpr<float>());
    Sync<HardEvent::S_MTE3>();
    Store(Global<float>(y), to[8], 1);
}
MOEGRAD_HOSTMODEL_KERNEL(sum_register)
