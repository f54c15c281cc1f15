// The dimensions of a tensor. One that does not exist reads as kInvalidDimValue, where a device reads stale data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gert {

class Shape {
public:
    static constexpr std::size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidDimValue = std::numeric_limits<int64_t>::min();

    Shape() { Invalidate(0); }

    Shape(std::initializer_list<int64_t> dims) : Shape()
    {
        if (dims.size() <= kMaxDimNum) {
            for (const int64_t dim : dims) {
                AppendDim(dim);
            }
        }
    }

    bool operator==(const Shape& other) const
    {
        if (dim_num_ != other.dim_num_) {
            return false;
        }
        for (std::size_t i = 0; i < dim_num_; ++i) {
            if (dims_[i] != other.dims_[i]) {
                return false;
            }
        }
        return true;
    }
    bool operator!=(const Shape& other) const { return !(*this == other); }

    // The number of elements: 1 for a scalar, kInvalidDimValue where it does not fit 64 bits.
    int64_t GetShapeSize() const
    {
        int64_t size = 1;
        for (std::size_t i = 0; i < dim_num_; ++i) {
            if (__builtin_mul_overflow(size, dims_[i], &size)) {
                return kInvalidDimValue;
            }
        }
        return size;
    }

    bool IsScalar() const { return dim_num_ == 0; }
    void SetScalar() { SetDimNum(0); }

    std::size_t GetDimNum() const { return dim_num_; }
    void SetDimNum(std::size_t dim_num)
    {
        dim_num_ = dim_num < kMaxDimNum ? dim_num : kMaxDimNum;
        Invalidate(dim_num_);
    }

    int64_t GetDim(std::size_t index) const { return index < dim_num_ ? dims_[index] : kInvalidDimValue; }
    void SetDim(std::size_t index, int64_t value)
    {
        if (index < kMaxDimNum) {
            dims_[index] = value;
        }
    }

    const int64_t& operator[](std::size_t index) const { return dims_[index]; }
    int64_t& operator[](std::size_t index) { return dims_[index]; }

    Shape& AppendDim(int64_t value)
    {
        if (dim_num_ < kMaxDimNum) {
            dims_[dim_num_++] = value;
        }
        return *this;
    }

private:
    void Invalidate(std::size_t from)
    {
        for (std::size_t i = from; i < kMaxDimNum; ++i) {
            dims_[i] = kInvalidDimValue;
        }
    }

    std::size_t dim_num_ = 0;
    int64_t dims_[kMaxDimNum];
};

}  // namespace gert
