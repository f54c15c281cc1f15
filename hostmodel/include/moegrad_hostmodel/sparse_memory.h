// Memory that costs nothing until it is touched, with room around it that must not be touched at all.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace moegrad::hostmodel {

// Address space that costs nothing until it is touched.
class SparseMemory {
public:
    SparseMemory() = default;
    SparseMemory(uint64_t guard, uint64_t bytes) : guard_(RoundUp(guard)), bytes_(RoundUp(bytes + 1))
    {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* memory = mmap(nullptr, total(), PROT_NONE, flags, -1, 0);
        if (memory == MAP_FAILED) {
            std::perror("moegrad hostmodel: mmap");
            std::abort();
        }
        base_ = static_cast<uint8_t*>(memory);
        mprotect(base_ + guard_, bytes_, PROT_READ | PROT_WRITE);
    }
    ~SparseMemory() { Release(); }
    SparseMemory(SparseMemory&& other) noexcept { *this = std::move(other); }
    SparseMemory& operator=(SparseMemory&& other) noexcept
    {
        std::swap(base_, other.base_);
        std::swap(guard_, other.guard_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    uint8_t* data() const { return base_ + guard_; }
    uint64_t mapped() const { return bytes_; }
    bool Near(const uint8_t* address) const { return address >= base_ && address < base_ + total(); }

private:
    static uint64_t RoundUp(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
    uint64_t total() const { return bytes_ + 2 * guard_; }
    void Release()
    {
        if (base_ != nullptr) {
            munmap(base_, total());
        }
    }

    uint8_t* base_ = nullptr;
    uint64_t guard_ = 0;
    uint64_t bytes_ = 0;
};

}  // namespace moegrad::hostmodel
