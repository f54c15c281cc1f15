// LocalTensor and GlobalTensor: typed windows on the Unified Buffer and on global memory.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "float16.h"
#include "gm_access.h"
#include "keywords.h"

namespace moegrad::hostmodel {

// An element offset with the place it was written at, and the width it was computed in.
struct Offset {
    template <typename I, typename = std::enable_if_t<std::is_integral_v<I> || std::is_enum_v<I>>>
    Offset(I value, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : elements(static_cast<int64_t>(value)), narrow(sizeof(I) <= 4), where{file, line}
    {
    }
    int64_t elements;
    bool narrow;
    Where where;
};

// What an operation needs to know of a local tensor, without its element type.
struct UbPlace {
    int64_t begin = 0;   // byte address in UB
    int64_t limit = 0;   // bytes from begin to the end of the tensor
    Buffer* buffer = nullptr;
    uint32_t generation = 0;
};

void ScalarRead(const UbPlace& place, uint32_t bytes, const Site& site, void* out);
void ScalarWrite(const UbPlace& place, uint32_t bytes, const Site& site, const void* in);
void GmScalarRead(const GmPlace& place, uint32_t bytes, const Site& site, void* out);
void GmScalarWrite(const GmPlace& place, uint32_t bytes, const Site& site, const void* in);

// Makes a tensor from a place; kept out of the tensor's interface.
struct TensorMaker;

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T>
class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;

    // A tensor at a chosen UB address, for kernels without a TPipe.
    LocalTensor(TPosition position, uint32_t address, uint32_t elements)
    {
        moegrad::hostmodel::Buffer& raw = moegrad::hostmodel::Self().RawUb();
        raw.position = static_cast<int>(position);
        place_ = {address, static_cast<int64_t>(elements) * static_cast<int64_t>(sizeof(T)), &raw, raw.generation};
    }

    LocalTensor operator[](moegrad::hostmodel::Offset offset) const
    {
        const int64_t bytes = offset.elements * static_cast<int64_t>(sizeof(T));
        if (offset.elements < 0 || bytes > place_.limit) {
            moegrad::hostmodel::Self().Report(
                "ub-out-of-bounds", {"LocalTensor::operator[]", offset.where},
                moegrad::hostmodel::Text("offset ", offset.elements, " of a tensor of ", GetSize(), " elements"));
        }
        LocalTensor moved = *this;
        moved.place_.begin += bytes;
        moved.place_.limit -= bytes;
        return moved;
    }

    T GetValue(moegrad::hostmodel::Offset index) const
    {
        T value;
        moegrad::hostmodel::ScalarRead(At(index), sizeof(T), {"LocalTensor::GetValue", index.where}, &value);
        return value;
    }
    T operator()(moegrad::hostmodel::Offset index) const { return GetValue(index); }

    template <typename V>
    void SetValue(moegrad::hostmodel::Offset index, V value) const
    {
        const T element = static_cast<T>(value);
        moegrad::hostmodel::ScalarWrite(At(index), sizeof(T), {"LocalTensor::SetValue", index.where}, &element);
    }

    template <typename U>
    LocalTensor<U> ReinterpretCast() const
    {
        LocalTensor<U> other;
        other.place_ = place_;
        return other;
    }

    uint32_t GetSize() const { return place_.limit < 0 ? 0 : static_cast<uint32_t>(place_.limit / Width()); }
    void SetSize(uint32_t elements) { place_.limit = static_cast<int64_t>(elements) * Width(); }
    uint32_t GetLength() const { return GetSize() * static_cast<uint32_t>(sizeof(T)); }
    int32_t GetPosition() const { return place_.buffer == nullptr ? 0 : place_.buffer->position; }
    __ubuf__ T* GetPhyAddr(uint32_t offset = 0) const
    {
        const auto address = static_cast<uint32_t>(place_.begin + offset * Width());
        return reinterpret_cast<T*>(moegrad::hostmodel::Self().ub.data(address));
    }
    void SetUserTag(int32_t tag) { tag_ = tag; }
    int32_t GetUserTag() const { return tag_; }

private:
    template <typename U>
    friend class LocalTensor;
    friend struct moegrad::hostmodel::TensorMaker;

    static constexpr int64_t Width() { return static_cast<int64_t>(sizeof(T)); }

    moegrad::hostmodel::UbPlace At(const moegrad::hostmodel::Offset& index) const
    {
        moegrad::hostmodel::UbPlace place = place_;
        place.begin += index.elements * Width();
        place.limit -= index.elements * Width();
        return place;
    }

    moegrad::hostmodel::UbPlace place_;
    int32_t tag_ = 0;
};

template <typename T>
class GlobalTensor {
public:
    using PrimType = T;

    GlobalTensor() = default;

    void SetGlobalBuffer(__gm__ T* address) { SetGlobalBuffer(address, 0); }
    void SetGlobalBuffer(__gm__ T* address, const uint64_t elements)
    {
        place_ = {};
        size_ = elements;
        place_.array = moegrad::hostmodel::Self().session.gm.Find(address);
        if (place_.array != nullptr) {
            place_.offset = reinterpret_cast<const uint8_t*>(address) - place_.array->data();
        }
        if (elements != 0) {
            place_.declared_begin = place_.offset;
            place_.declared_end = place_.offset + static_cast<int64_t>(elements) * Width();
        }
    }

    GlobalTensor operator[](moegrad::hostmodel::Offset offset) const
    {
        CheckWidth(offset, "GlobalTensor::operator[]");
        GlobalTensor moved = *this;
        moved.place_.offset += offset.elements * Width();
        const auto skipped = static_cast<uint64_t>(offset.elements);
        moved.size_ = size_ > skipped ? size_ - skipped : 0;
        return moved;
    }

    T GetValue(moegrad::hostmodel::Offset index) const
    {
        CheckWidth(index, "GlobalTensor::GetValue");
        T value;
        moegrad::hostmodel::GmScalarRead(place_.Shifted(index.elements * Width()), sizeof(T),
                                         {"GlobalTensor::GetValue", index.where}, &value);
        return value;
    }
    T operator()(moegrad::hostmodel::Offset index) const { return GetValue(index); }

    template <typename V>
    void SetValue(moegrad::hostmodel::Offset index, V value) const
    {
        CheckWidth(index, "GlobalTensor::SetValue");
        const T element = static_cast<T>(value);
        moegrad::hostmodel::GmScalarWrite(place_.Shifted(index.elements * Width()), sizeof(T),
                                          {"GlobalTensor::SetValue", index.where}, &element);
    }

    uint64_t GetSize() const { return size_; }
    const __gm__ T* GetPhyAddr() const { return reinterpret_cast<const T*>(place_.address()); }
    __gm__ T* GetPhyAddr(const uint64_t offset) const { return reinterpret_cast<T*>(place_.address()) + offset; }

    template <CacheRwMode rw = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode)
    {
    }

private:
    friend struct moegrad::hostmodel::TensorMaker;

    static constexpr int64_t Width() { return static_cast<int64_t>(sizeof(T)); }

    // A 32-bit product wraps to a negative offset in an array of more than 2^31 elements.
    void CheckWidth(const moegrad::hostmodel::Offset& offset, const char* api) const
    {
        constexpr uint64_t kReach = uint64_t{1} << 31;
        if (offset.narrow && offset.elements < 0 && place_.array != nullptr &&
            place_.array->bytes() / sizeof(T) > kReach) {
            moegrad::hostmodel::Self().Report(
                "gm-offset-overflow", {api, offset.where},
                moegrad::hostmodel::Text("a 32-bit element offset came out as ", offset.elements, " in '",
                                         place_.array->name(), "' of ", place_.array->bytes() / sizeof(T),
                                         " elements"));
        }
    }

    moegrad::hostmodel::GmPlace place_;
    uint64_t size_ = 0;
};

}  // namespace AscendC

namespace moegrad::hostmodel {

struct TensorMaker {
    template <typename T>
    static AscendC::LocalTensor<T> Make(Buffer& buffer, int64_t begin, int64_t bytes)
    {
        AscendC::LocalTensor<T> tensor;
        tensor.place_ = {begin, bytes, &buffer, buffer.generation};
        return tensor;
    }
    template <typename T>
    static const UbPlace& Place(const AscendC::LocalTensor<T>& tensor)
    {
        return tensor.place_;
    }
    template <typename T>
    static const GmPlace& Place(const AscendC::GlobalTensor<T>& tensor)
    {
        return tensor.place_;
    }
};

template <typename Tensor>
const auto& PlaceOf(const Tensor& tensor)
{
    return TensorMaker::Place(tensor);
}

}  // namespace moegrad::hostmodel
