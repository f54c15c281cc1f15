// Easy one-operand functions, bitwise operations and shifts. Transcendental results are the host's, not the device's.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "arithmetic.h"

namespace moegrad::hostmodel {

struct AbsOp {
    template <typename T>
    T operator()(T a) const { return std::signbit(static_cast<double>(a)) ? static_cast<T>(-a) : a; }
};
struct ReluOp {
    template <typename T>
    T operator()(T a) const { return a > 0 || a != a ? a : T(0); }
};
struct NegOp {
    template <typename T>
    T operator()(T a) const { return static_cast<T>(-a); }
};
struct ExpOp {
    float operator()(float a) const { return std::exp(a); }
};
struct LnOp {
    float operator()(float a) const { return std::log(a); }
};
struct SqrtOp {
    float operator()(float a) const { return std::sqrt(a); }
};
struct RsqrtOp {
    float operator()(float a) const { return 1.0F / std::sqrt(a); }
};
struct ReciprocalOp {
    float operator()(float a) const { return 1.0F / a; }
};
struct NotOp {
    template <typename T>
    T operator()(T a) const { return static_cast<T>(~a); }
};
struct AndOp {
    template <typename T>
    T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
struct OrOp {
    template <typename T>
    T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
struct ShiftLeftOp {
    template <typename T>
    T operator()(T a, T b) const
    {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
    }
};
struct ShiftRightOp {
    template <typename T>
    T operator()(T a, T b) const { return static_cast<T>(a >> b); }
};
// x > 0 keeps x, otherwise x * slope.
struct LeakyReluOp {
    template <typename T>
    T operator()(T a, T slope) const { return a > 0 ? a : static_cast<T>(a * slope); }
};

}  // namespace moegrad::hostmodel

namespace AscendC {

#define MGH_UNARY(Name, Condition, Functor)                                                                           \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t count, MGH_HERE)                    \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Condition, #Name);                                                                          \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryCount<T>(#Name, where, PlaceOf(dst), PlaceOf(src), count,                                                \
                      UnaryLane<T>(Self().saturate, Functor{}));                                      \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true, typename MaskForm>                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const MaskForm mask, const int64_t repeatTime,    \
              const UnaryRepeatParams& repeatParams, MGH_HERE)                                                        \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Condition, #Name);                                                                          \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryRepeat<T>(#Name, where, PlaceOf(dst), PlaceOf(src), isSetMask, MaskArgument(mask), repeatTime,           \
                       repeatParams, UnaryLane<T>(Self().saturate, Functor{}));                       \
    }

#define MGH_16BIT (moegrad::hostmodel::kOneOf<T, int16_t, uint16_t>)
#define MGH_FLOATS (moegrad::hostmodel::kFunctional<T>)

MGH_UNARY(Abs, MGH_FLOATS, AbsOp)
MGH_UNARY(Relu, (moegrad::hostmodel::kOneOf<T, half, float, int32_t>), ReluOp)
MGH_UNARY(Neg, MGH_FLOATS, NegOp)
MGH_UNARY(Exp, MGH_FLOATS, ExpOp)
MGH_UNARY(Ln, MGH_FLOATS, LnOp)
MGH_UNARY(Sqrt, MGH_FLOATS, SqrtOp)
MGH_UNARY(Rsqrt, MGH_FLOATS, RsqrtOp)
MGH_UNARY(Reciprocal, MGH_FLOATS, ReciprocalOp)
MGH_UNARY(Not, MGH_16BIT, NotOp)
MGH_BINARY(And, MGH_16BIT, AndOp)
MGH_BINARY(Or, MGH_16BIT, OrOp)

#define MGH_SCALAR_OF(Name, Condition, Functor)                                                                       \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int64_t count,        \
              MGH_HERE)                                                                                               \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Condition, #Name);                                                                          \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryCount<T>(#Name, where, PlaceOf(dst), PlaceOf(src), count,                                                \
                      ScalarLane<T>(Self().saturate, Functor{}, scalarValue));                        \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true, typename MaskForm>                                                   \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const MaskForm mask,        \
              const int64_t repeatTime, const UnaryRepeatParams& repeatParams, MGH_HERE)                              \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(Condition, #Name);                                                                          \
        using namespace moegrad::hostmodel;                                                                           \
        UnaryRepeat<T>(#Name, where, PlaceOf(dst), PlaceOf(src), isSetMask, MaskArgument(mask), repeatTime,           \
                       repeatParams, ScalarLane<T>(Self().saturate, Functor{}, scalarValue));         \
    }

#define MGH_SHIFTABLE (moegrad::hostmodel::kOneOf<T, int16_t, uint16_t, int32_t, uint32_t>)

MGH_SCALAR_OF(ShiftLeft, MGH_SHIFTABLE, ShiftLeftOp)
MGH_SCALAR_OF(ShiftRight, MGH_SHIFTABLE, ShiftRightOp)
MGH_SCALAR_OF(LeakyRelu, MGH_FLOATS, LeakyReluOp)

}  // namespace AscendC
