// List attributes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gert {

class ContinuousVector {
public:
    ContinuousVector(const ContinuousVector&) = delete;
    ContinuousVector& operator=(const ContinuousVector&) = delete;
    ContinuousVector(ContinuousVector&&) = default;
    ContinuousVector& operator=(ContinuousVector&&) = default;

    std::size_t GetSize() const { return size_; }
    const void* GetData() const { return data_; }

protected:
    ContinuousVector(const void* data, std::size_t size) : data_(data), size_(size) {}
    ~ContinuousVector() = default;

private:
    const void* data_;
    std::size_t size_;
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
public:
    explicit TypedContinuousVector(std::vector<T> elements)
        : ContinuousVector(elements.data(), elements.size()), elements_(std::move(elements))
    {
    }

    const T* GetData() const { return elements_.data(); }

private:
    std::vector<T> elements_;
};

}  // namespace gert
