// Global memory: each registered array in its own address range between guard zones, with a log of who wrote each byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "sparse_memory.h"
#include "ub_memory.h"

namespace moegrad::hostmodel {

enum class Role : uint32_t { kInput = 0, kOutput = 1, kInOut = 2, kWorkspace = 3, kTiling = 4, kAbsent = 5 };

// One access to a writable array, by a store, a load or a scalar access.
struct GmRecord {
    uint32_t core;
    uint32_t phase;  // how many synchronisations the core had passed
    uint32_t number;
    uint32_t site;
    Pipe pipe;
    bool atomic;
};

class GmArray {
public:
    // Wide enough that an index of -1, or a row past the end, is still recognised as meaning this array.
    static constexpr uint64_t kGuardBytes = uint64_t{256} << 20;
    static constexpr uint8_t kCanary = 0xC5;

    GmArray(std::string name, Role role, uint64_t bytes, bool virtual_array)
        : name_(std::move(name)), role_(role), bytes_(bytes), virtual_(virtual_array), memory_(kGuardBytes, bytes)
    {
        if (tracked()) {
            writes_ = SparseMemory(0, bytes * sizeof(uint32_t));
            reads_ = SparseMemory(0, bytes * sizeof(uint32_t));
            states_ = SparseMemory(0, bytes);
        }
        if (!virtual_) {
            if (role == Role::kOutput || role == Role::kWorkspace) {
                std::memset(data(), kPoisonByte, bytes);
                std::memset(states_.data(), kUnwrittenGm, bytes);
            }
            std::memset(data() + bytes, kCanary, memory_.mapped() - bytes);
        }
    }

    const std::string& name() const { return name_; }
    Role role() const { return role_; }
    uint64_t bytes() const { return bytes_; }
    bool is_virtual() const { return virtual_; }
    uint8_t* data() const { return memory_.data(); }
    bool Near(const uint8_t* address) const { return memory_.Near(address); }
    bool writable() const { return role_ == Role::kOutput || role_ == Role::kInOut || role_ == Role::kWorkspace; }
    bool tracked() const { return writable(); }

    bool Contains(int64_t offset, uint64_t length) const
    {
        const auto begin = static_cast<uint64_t>(offset);
        return offset >= 0 && begin <= bytes_ && length <= bytes_ - begin;
    }

    uint32_t* writes() const { return reinterpret_cast<uint32_t*>(writes_.data()); }
    uint32_t* reads() const { return reinterpret_cast<uint32_t*>(reads_.data()); }
    uint8_t* states() const { return states_.data(); }

    bool CanaryIntact() const
    {
        for (uint64_t i = bytes_; !virtual_ && i < memory_.mapped(); ++i) {
            if (data()[i] != kCanary) {
                return false;
            }
        }
        return true;
    }

private:
    std::string name_;
    Role role_;
    uint64_t bytes_;
    bool virtual_;
    SparseMemory memory_;
    SparseMemory writes_;
    SparseMemory reads_;
    SparseMemory states_;
};

class GmMemory {
public:
    GmArray& Add(std::string name, Role role, uint64_t bytes, bool virtual_array = false)
    {
        arrays_.emplace_back(std::move(name), role, bytes, virtual_array);
        return arrays_.back();
    }

    // The array that |address| belongs to, guard zones included.
    GmArray* Find(const void* address)
    {
        for (GmArray& array : arrays_) {
            if (array.Near(static_cast<const uint8_t*>(address))) {
                return &array;
            }
        }
        return nullptr;
    }

    std::deque<GmArray>& arrays() { return arrays_; }

    uint32_t AddRecord(const GmRecord& record)
    {
        records_.push_back(record);
        return static_cast<uint32_t>(records_.size());
    }
    // Records count from 1, so that 0 means untouched.
    const GmRecord& record(uint32_t id) const { return records_[id - 1]; }
    uint32_t stamp() const { return static_cast<uint32_t>(records_.size()); }

private:
    std::deque<GmArray> arrays_;
    std::vector<GmRecord> records_;
};

}  // namespace moegrad::hostmodel
