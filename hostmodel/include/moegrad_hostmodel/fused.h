// Multiply-adds: Axpy, MulAddDst, FusedMulAdd, and the half-to-float forms of the first two.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic.h"

namespace moegrad::hostmodel {

// a * b + c. Whether the device rounds the product first is not documented: a switch of the launch.
struct MultiplyAdd {
    bool fused;
    bool saturate;

    template <typename T>
    T Run(float a, float b, float c) const
    {
        if (fused) {
            return Finish<T>(std::fma(a, b, c));
        }
        return Finish<T>(static_cast<float>(Widen(Finish<T>(a * b))) + c);
    }

private:
    template <typename T>
    T Finish(float value) const
    {
        if constexpr (std::is_same_v<T, float>) {
            return value;
        } else {
            return RoundResult<T>(value, saturate);
        }
    }
};

inline MultiplyAdd CurrentMultiplyAdd() { return {Self().session.options.fused_mac, Self().saturate}; }

template <typename T>
float AsFloat(T value)
{
    return static_cast<float>(Widen(value));
}

// dst = scalar * src + dst, as an operation with sources (src, dst).
template <typename T, typename U>
auto AxpyLane(float scalar)
{
    return [mac = CurrentMultiplyAdd(), scalar](Core& core, int64_t to, const std::array<int64_t, 2>& from) {
        const float x = AsFloat(LoadElement<U>(core, from[0]));
        const float y = AsFloat(LoadElement<T>(core, from[1]));
        StoreElement<T>(core, to, mac.Run<T>(scalar, x, y));
    };
}

// dst = src0 * src1 + dst, with sources (src0, src1, dst).
template <typename T, typename U>
auto MulAddDstLane()
{
    return [mac = CurrentMultiplyAdd()](Core& core, int64_t to, const std::array<int64_t, 3>& from) {
        const float a = AsFloat(LoadElement<U>(core, from[0]));
        const float b = AsFloat(LoadElement<U>(core, from[1]));
        StoreElement<T>(core, to, mac.Run<T>(a, b, AsFloat(LoadElement<T>(core, from[2]))));
    };
}

// dst = src0 * dst + src1, with sources (src0, src1, dst).
template <typename T>
auto FusedMulAddLane()
{
    return [mac = CurrentMultiplyAdd()](Core& core, int64_t to, const std::array<int64_t, 3>& from) {
        const float a = AsFloat(LoadElement<T>(core, from[0]));
        const float d = AsFloat(LoadElement<T>(core, from[2]));
        StoreElement<T>(core, to, mac.Run<T>(a, d, AsFloat(LoadElement<T>(core, from[1]))));
    };
}

template <typename T, typename U>
inline constexpr bool kMacPair = (std::is_same_v<T, U> && kMultiplyAdd<T>) ||
                                 (std::is_same_v<T, float> && std::is_same_v<U, half>);

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T, typename U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, const int64_t count, MGH_HERE)
{
    MGH_REQUIRE_DTYPE((moegrad::hostmodel::kMacPair<T, U>), "Axpy");
    using namespace moegrad::hostmodel;
    VectorCall call = CountCall<T>("Axpy", where, count);
    if (call.lanes.repeats != 0) {
        IssueElementwise<2>(call, CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T)),
                            {CountOperand(PlaceOf(src), "src", sizeof(U), sizeof(T)),
                             CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T))},
                            AxpyLane<T, U>(AsFloat(scalarValue)));
    }
}

template <typename T, typename U, bool isSetMask = true, typename MaskForm>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, const MaskForm mask,
          const int64_t repeatTime, const UnaryRepeatParams& p, MGH_HERE)
{
    MGH_REQUIRE_DTYPE((moegrad::hostmodel::kMacPair<T, U>), "Axpy");
    using namespace moegrad::hostmodel;
    VectorCall call = RepeatCall<T>("Axpy", where, isSetMask, MaskArgument(mask), repeatTime);
    CheckUnaryStrides(call.site, p);
    if (call.lanes.repeats != 0) {
        const Operand destination = RepeatOperand(PlaceOf(dst), "dst", sizeof(T), p.dstBlkStride, p.dstRepStride);
        IssueElementwise<2>(
            call, destination,
            {RepeatOperand(PlaceOf(src), "src", sizeof(U), p.srcBlkStride, p.srcRepStride), destination},
            AxpyLane<T, U>(AsFloat(scalarValue)));
    }
}

#define MGH_MULTIPLY_ADD(Name, Condition, Lane)                                                                       \
    template <typename T, typename U>                                                                                 \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, const int64_t count, \
              MGH_HERE)                                                                                               \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Condition, #Name);                                                                          \
        using namespace moegrad::hostmodel;                                                                           \
        VectorCall call = CountCall<T>(#Name, where, count);                                                          \
        if (call.lanes.repeats != 0) {                                                                                \
            const Operand to = CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T));                               \
            IssueElementwise<3>(call, to,                                                                             \
                                {CountOperand(PlaceOf(src0), "src0", sizeof(U), sizeof(T)),                           \
                                 CountOperand(PlaceOf(src1), "src1", sizeof(U), sizeof(T)), to},                      \
                                Lane);                                                                                \
        }                                                                                                             \
    }                                                                                                                 \
    template <typename T, typename U, bool isSetMask = true, typename MaskForm>                                       \
    void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, const MaskForm mask, \
              const int64_t repeatTime, const BinaryRepeatParams& p, MGH_HERE)                                        \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Condition, #Name);                                                                          \
        using namespace moegrad::hostmodel;                                                                           \
        VectorCall call = RepeatCall<T>(#Name, where, isSetMask, MaskArgument(mask), repeatTime);                     \
        CheckDestinationBlock(call.site, p.dstBlkStride.wide());                                                      \
        if (call.lanes.repeats != 0) {                                                                                \
            const Operand to = RepeatOperand(PlaceOf(dst), "dst", sizeof(T), p.dstBlkStride, p.dstRepStride);         \
            IssueElementwise<3>(                                                                                      \
                call, to,                                                                                             \
                {RepeatOperand(PlaceOf(src0), "src0", sizeof(U), p.src0BlkStride, p.src0RepStride),                   \
                 RepeatOperand(PlaceOf(src1), "src1", sizeof(U), p.src1BlkStride, p.src1RepStride), to},              \
                Lane);                                                                                                \
        }                                                                                                             \
    }

MGH_MULTIPLY_ADD(MulAddDst, (moegrad::hostmodel::kMacPair<T, U> && !moegrad::hostmodel::kIsBfloat16<T>),
                 (MulAddDstLane<T, U>()))
MGH_MULTIPLY_ADD(FusedMulAdd, (moegrad::hostmodel::kMultiplyAdd<T> && std::is_same_v<T, U>), FusedMulAddLane<T>())

}  // namespace AscendC
