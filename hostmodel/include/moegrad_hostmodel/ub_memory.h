// The Unified Buffer of one core: bytes, what each byte holds, and who last touched each 32-byte block.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "chip.h"
#include "pipes.h"
#include "sparse_memory.h"

namespace moegrad::hostmodel {

// What a byte holds, from good to bad: an operation's result is as bad as its worst operand.
enum ByteState : uint8_t { kInitialised = 0, kDummy = 1, kUnwrittenGm = 2, kPoison = 3 };

inline constexpr uint8_t kPoisonByte = 0xFF;  // a NaN in every floating point format, -1 as an index

struct Span {
    uint32_t begin;
    uint32_t bytes;
    uint32_t end() const { return begin + bytes; }
};

// Byte ranges, neighbours merged as they are added.
class SpanList {
public:
    void Add(uint32_t begin, uint32_t bytes)
    {
        if (bytes == 0) {
            return;
        }
        if (!spans_.empty() && spans_.back().end() == begin) {
            spans_.back().bytes += bytes;
        } else {
            spans_.push_back({begin, bytes});
        }
    }
    bool empty() const { return spans_.empty(); }
    auto begin() const { return spans_.begin(); }
    auto end() const { return spans_.end(); }
    uint32_t lowest() const
    {
        return std::min_element(spans_.begin(), spans_.end(), [](Span a, Span b) { return a.begin < b.begin; })->begin;
    }
    uint32_t highest() const
    {
        return std::max_element(spans_.begin(), spans_.end(), [](Span a, Span b) { return a.end() < b.end(); })->end();
    }

private:
    std::vector<Span> spans_;
};

// The last access of one pipe to a block: which bytes of it, in which operation, from where.
struct Touch {
    uint32_t mask;
    uint32_t number;
    uint32_t site;

    // Earlier accesses to other bytes stay visible: they are covered by the later number.
    void Note(uint32_t bytes, uint32_t operation, uint32_t from)
    {
        mask |= bytes;
        number = operation;
        site = from;
    }
};

// Loads only write UB and stores only read it.
inline constexpr std::array<Pipe, 3> kWriters = {kS, kV, kMte2};
inline constexpr std::array<Pipe, 3> kReaders = {kS, kV, kMte3};

// Last writes and reads of one block, by pipe. Masks tell bytes apart, so neighbours in a block do not disturb each
// other; a byte is in the write mask of one pipe at most, the last to write it.
class BlockLog {
public:
    Touch& written(Pipe pipe) { return writes_[pipe]; }
    const Touch& written(Pipe pipe) const { return writes_[pipe]; }
    Touch& read(Pipe pipe) { return reads_[pipe == kMte3 ? 2 : pipe]; }
    const Touch& read(Pipe pipe) const { return reads_[pipe == kMte3 ? 2 : pipe]; }

    // Whoever comes after a write to |bytes| comes after what was done to them before.
    void Forget(uint32_t bytes)
    {
        for (int i = 0; i < 3; ++i) {
            writes_[i].mask &= ~bytes;
            reads_[i].mask &= ~bytes;
        }
    }

private:
    Touch writes_[kWriters.size()];
    Touch reads_[kReaders.size()];
};
static_assert(std::is_trivial_v<BlockLog>, "a log starts as zeroed memory");

enum class TensorState : uint8_t { kFree, kOccupied, kEnqueued, kDequeued, kUnmanaged };

// One block of an InitBuffer: its bounds and, if a queue owns it, its place in the state machine.
struct Buffer {
    uint32_t begin = 0;
    uint32_t end = 0;
    int position = 0;
    const void* owner = nullptr;
    TensorState state = TensorState::kUnmanaged;
    uint32_t generation = 0;
    int free_event = -1;
};

class UbMemory {
public:
    // Room above the real size, so that a kernel that overflows can be reported and still runs on.
    static constexpr uint32_t kModelBytes = 4u << 20;

    UbMemory()
        : data_(0, kModelBytes), state_(0, kModelBytes), log_(0, kModelBytes / kBlockBytes * sizeof(BlockLog))
    {
    }

    // The bytes of a new buffer are arbitrary. What was there before is overwritten only when nothing is in flight: a
    // pending store may still read it. The log stays, so that such a store is found when the buffer is used too early.
    void Poison(uint32_t begin, uint32_t end, bool idle)
    {
        end = std::min(end, kModelBytes);
        if (begin >= end) {
            return;
        }
        std::memset(state_.data() + begin, kPoison, end - begin);
        if (idle) {
            std::memset(data_.data() + begin, kPoisonByte, end - begin);
        }
    }

    uint8_t* data(uint32_t address) { return data_.data() + address; }
    uint8_t* state(uint32_t address) { return state_.data() + address; }
    BlockLog& log(uint32_t block) { return reinterpret_cast<BlockLog*>(log_.data())[block]; }

    void SetState(Span span, ByteState state) { std::memset(state_.data() + span.begin, state, span.bytes); }

    ByteState WorstState(Span span) const
    {
        const uint8_t* at = state_.data() + span.begin;
        uint64_t any = 0;
        uint32_t i = 0;
        for (; i + 8 <= span.bytes; i += 8) {
            uint64_t word;
            std::memcpy(&word, at + i, 8);
            any |= word;
        }
        for (; i < span.bytes; ++i) {
            any |= at[i];
        }
        return any == 0 ? kInitialised : static_cast<ByteState>(*std::max_element(at, at + span.bytes));
    }

    uint32_t FirstInState(Span span, ByteState state) const
    {
        const uint8_t* at = state_.data() + span.begin;
        return span.begin + static_cast<uint32_t>(std::find(at, at + span.bytes, state) - at);
    }

private:
    // Pages stay untouched until they are used, which keeps forty-eight idle cores cheap.
    SparseMemory data_;
    SparseMemory state_;
    SparseMemory log_;
};

}  // namespace moegrad::hostmodel
