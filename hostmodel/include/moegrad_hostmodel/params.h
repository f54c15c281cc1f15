// Parameter structs of moves and vector instructions, with the device's field names, order and units.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "chip.h"

namespace moegrad::hostmodel {

// A field of U that remembers a value it could not hold: the device would silently wrap it.
template <typename U>
class Field {
public:
    Field() = default;
    template <typename I, typename = std::enable_if_t<std::is_integral_v<I> || std::is_enum_v<I>>>
    Field(I value) : wide_(static_cast<int64_t>(value))
    {
    }
    operator U() const { return static_cast<U>(wide_); }
    int64_t wide() const { return wide_; }
    bool Fits(int64_t low, int64_t high) const { return wide_ >= low && wide_ <= high; }
    bool Fits() const { return sizeof(U) == 8 || Fits(0, static_cast<int64_t>(std::numeric_limits<U>::max())); }

    template <typename I>
    Field& operator+=(I step)
    {
        wide_ += static_cast<int64_t>(step);
        return *this;
    }

private:
    int64_t wide_;  // no initialiser: the type stays trivial, so that it may sit in a union
};

#if __NPU_ARCH__ == 3510
using ExtStride = int64_t;
#else
using ExtStride = uint32_t;
#endif

}  // namespace moegrad::hostmodel

namespace AscendC {

struct DataCopyParams {
    DataCopyParams() = default;
    DataCopyParams(const uint16_t count, const uint16_t len, const uint16_t src, const uint16_t dst)
        : blockCount(count), blockLen(len), srcGap(src), dstGap(dst)
    {
    }
    moegrad::hostmodel::Field<uint16_t> blockCount = 1;
    moegrad::hostmodel::Field<uint16_t> blockLen = 0;
    union {
        moegrad::hostmodel::Field<uint16_t> srcGap = 0;
        moegrad::hostmodel::Field<uint16_t> srcStride;
    };
    union {
        moegrad::hostmodel::Field<uint16_t> dstGap = 0;
        moegrad::hostmodel::Field<uint16_t> dstStride;
    };
};

struct DataCopyExtParams {
    DataCopyExtParams() = default;
    DataCopyExtParams(const uint16_t count, const uint32_t len, const moegrad::hostmodel::ExtStride src,
                      const moegrad::hostmodel::ExtStride dst, const uint32_t reserved)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved)
    {
    }
    moegrad::hostmodel::Field<uint16_t> blockCount = 1;
    moegrad::hostmodel::Field<uint32_t> blockLen = 0;
    moegrad::hostmodel::Field<moegrad::hostmodel::ExtStride> srcStride = 0;
    moegrad::hostmodel::Field<moegrad::hostmodel::ExtStride> dstStride = 0;
    uint32_t rsv = 0;
};

template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams() : paddingValue(T(0)) {}
    DataCopyPadExtParams(const bool pad, const uint8_t left, const uint8_t right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
    bool isPad = false;
    moegrad::hostmodel::Field<uint8_t> leftPadding = 0;
    moegrad::hostmodel::Field<uint8_t> rightPadding = 0;
    T paddingValue;
};

struct DataCopyPadParams {
    DataCopyPadParams() = default;
    DataCopyPadParams(const bool pad, const uint8_t left, const uint8_t right, const uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    uint64_t paddingValue = 0;
};

struct CopyRepeatParams {
    CopyRepeatParams() = default;
    CopyRepeatParams(const uint16_t dst, const uint16_t src, const uint16_t dstRep, const uint16_t srcRep)
        : dstStride(dst), srcStride(src), dstRepeatSize(dstRep), srcRepeatSize(srcRep)
    {
    }
    moegrad::hostmodel::Field<uint16_t> dstStride = 1;
    moegrad::hostmodel::Field<uint16_t> srcStride = 1;
    moegrad::hostmodel::Field<uint16_t> dstRepeatSize = 8;
    moegrad::hostmodel::Field<uint16_t> srcRepeatSize = 8;
};

struct BrcbRepeatParams {
    BrcbRepeatParams() = default;
    BrcbRepeatParams(const uint16_t blk, const uint16_t rep) : dstBlkStride(blk), dstRepStride(rep) {}
    moegrad::hostmodel::Field<uint16_t> dstBlkStride = 1;
    moegrad::hostmodel::Field<uint16_t> dstRepStride = 8;
};

struct UnaryRepeatParams {
    UnaryRepeatParams() = default;
    UnaryRepeatParams(const uint16_t dstBlk, const uint16_t srcBlk, const uint8_t dstRep, const uint8_t srcRep)
        : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep)
    {
    }
    moegrad::hostmodel::Field<uint16_t> dstBlkStride = 1;
    moegrad::hostmodel::Field<uint16_t> srcBlkStride = 1;
    moegrad::hostmodel::Field<uint8_t> dstRepStride = 8;
    moegrad::hostmodel::Field<uint8_t> srcRepStride = 8;
};

struct BinaryRepeatParams {
    BinaryRepeatParams() = default;
    BinaryRepeatParams(const uint8_t dstBlk, const uint8_t src0Blk, const uint8_t src1Blk, const uint8_t dstRep,
                       const uint8_t src0Rep, const uint8_t src1Rep)
        : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep),
          src0RepStride(src0Rep), src1RepStride(src1Rep)
    {
    }
    moegrad::hostmodel::Field<uint8_t> dstBlkStride = 1;
    moegrad::hostmodel::Field<uint8_t> src0BlkStride = 1;
    moegrad::hostmodel::Field<uint8_t> src1BlkStride = 1;
    moegrad::hostmodel::Field<uint8_t> dstRepStride = 8;
    moegrad::hostmodel::Field<uint8_t> src0RepStride = 8;
    moegrad::hostmodel::Field<uint8_t> src1RepStride = 8;
};

struct GatherMaskParams {
    GatherMaskParams() = default;
    GatherMaskParams(const uint8_t blk, const uint16_t times, const uint16_t rep0, const uint8_t rep1)
        : src0BlockStride(blk), repeatTimes(times), src0RepeatStride(rep0), src1RepeatStride(rep1)
    {
    }
    uint8_t src0BlockStride = 1;
    uint16_t repeatTimes = 0;
    uint16_t src0RepeatStride = 8;
    uint8_t src1RepeatStride = 8;
};

}  // namespace AscendC
