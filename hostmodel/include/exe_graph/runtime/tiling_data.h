// Raw tiling data: a buffer of fixed capacity that begins as poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gert {

class TilingData {
public:
    TilingData(std::size_t capacity, uint8_t poison) : bytes_(capacity, poison) {}
    TilingData(const TilingData&) = delete;
    TilingData& operator=(const TilingData&) = delete;

    std::size_t GetCapacity() const { return bytes_.size(); }
    std::size_t GetDataSize() const { return size_; }
    void SetDataSize(std::size_t size) { size_ = size; }
    void* GetData() { return bytes_.data(); }
    const void* GetData() const { return bytes_.data(); }

private:
    std::vector<uint8_t> bytes_;
    std::size_t size_ = 0;
};

}  // namespace gert
