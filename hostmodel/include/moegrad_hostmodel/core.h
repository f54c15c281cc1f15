// One vector core during a launch: its memory, pipes, events, masks and other state.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "enums.h"
#include "session.h"
#include "ub_memory.h"

namespace AscendC {
class TPipe;
}

namespace moegrad::hostmodel {

// Element mask of a repeat: up to 128 lanes in two words.
struct Mask {
    std::array<uint64_t, 2> word{~uint64_t{0}, ~uint64_t{0}};
    bool Has(uint32_t lane) const { return ((word[lane >> 6] >> (lane & 63)) & 1) != 0; }
    static Mask FirstLanes(uint64_t lanes)
    {
        const auto low = [](uint64_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
        return {{low(lanes), lanes > 64 ? low(lanes - 64) : 0}};
    }
};

enum class AtomicOp : uint8_t { kNone, kAdd, kMax, kMin };
enum class ElementType : uint8_t { kNone, kInt8, kInt16, kInt32, kHalf, kBfloat16, kFloat, kOther };

// A 64-byte line of the scalar data cache, which is private and not coherent.
struct CacheLine {
    std::array<uint8_t, kCacheLineBytes> bytes;
    uint64_t dirty = 0;  // bit per byte
    uint32_t stamp = 0;  // how many accesses to global memory the core could have seen
    uint32_t site = 0;
};

struct EventSlot {
    bool set = false;
    bool held = false;     // allocated by AllocEventID or a queue
    bool by_queue = false;
    bool fetched = false;  // came from FetchEventID
    uint32_t set_site = 0;
    Token token{};
};

class Core {
public:
    Core(Session& owner, uint32_t block)
        : session(owner), index(block), saturate(owner.options.saturate), known(owner.block_count, 0)
    {
    }

    Session& session;
    uint32_t index;
    UbMemory ub;
    PipeSet pipes;
    Counters counters;
    std::deque<Buffer> buffers;
    uint32_t ub_used = 0;
    bool raw_ub = false;  // the kernel places tensors itself, without a TPipe
    AscendC::TPipe* tpipe = nullptr;
    uint32_t tpipes_made = 0;
    bool drained_last = false;
    bool aborted = false;

    Mask mask;
    uint64_t mask_count = 0;
    AscendC::MaskMode mask_mode = AscendC::MaskMode::NORMAL;
    AtomicOp atomic = AtomicOp::kNone;
    ElementType atomic_type = ElementType::kNone;
    uint32_t atomic_site = 0;
    uint32_t mask_site = 0;
    double reduce_spr = 0;
    uint32_t reduce_spr_number = 0;
    Mask compare_mask;
    uint64_t pad_value_bits = 0;
    float deq_scale = 1.0F;
    bool saturate;  // control bit 48, inverted

    std::array<std::array<EventSlot, 8>, kEventTypes> events;
    std::unordered_map<const uint8_t*, CacheLine> dcache;
    std::unordered_map<int, uint32_t> live_buffers;  // by TPosition

    // How many synchronisations of each core this one is known to come after; own entry: how many it has passed.
    std::vector<uint32_t> known;
    uint32_t phase() const { return known[index]; }

    [[gnu::noinline, gnu::cold]] void Report(const char* name, const Site& site, std::string message)
    {
        session.diagnostics.Report(name, site, index, std::move(message));
    }

    [[noreturn]] void Abort()
    {
        aborted = true;
        throw CoreAbort{};
    }

    // Counts an API call: a loop that never ends is a finding, not a hang.
    void Step(const Site& site)
    {
        if (++steps_ > session.steps_allowed) {
            StopLooping(site);
        }
    }

    // Places |bytes| of UB, as the device does it: one after another from offset 0, with no check of its own.
    Buffer& AddBuffer(uint32_t bytes, int position, const void* owner)
    {
        Buffer buffer;
        buffer.begin = ub_used;
        buffer.end = ub_used + bytes;
        buffer.position = position;
        buffer.owner = owner;
        ub.Poison(buffer.begin, buffer.end, pipes.Idle());
        ub_used = buffer.end;
        buffers.push_back(buffer);
        return buffers.back();
    }

    // Forgets all buffers; tensors that still name one of them keep a valid pointer.
    void RetireBuffers()
    {
        for (Buffer& buffer : buffers) {
            buffer.generation += 1;
        }
        retired_.push_back(std::move(buffers));
        buffers = {};
        live_buffers.clear();
        ub_used = 0;
    }

    // The whole UB as one region, for tensors at hand-chosen addresses.
    Buffer& RawUb()
    {
        if (!raw_ub) {
            raw_ub = true;
            raw_buffer_.begin = 0;
            raw_buffer_.end = session.ub_budget();
            ub.Poison(ub_used, raw_buffer_.end, pipes.Idle());
        }
        return raw_buffer_;
    }

    // The UB above all buffers, for library calls that help themselves to it. True when it already holds |filling|.
    std::pair<Buffer*, bool> ScratchBuffer(uint32_t begin, uint32_t end, const std::string& filling)
    {
        const bool same_place = scratch_.begin == begin && scratch_.end == end;
        const bool ready = same_place && scratch_filling_ == filling;
        if (!same_place) {
            scratch_.begin = begin;
            scratch_.end = end;
            ub.Poison(begin, end, pipes.Idle());
        }
        scratch_filling_ = filling;
        return {&scratch_, ready};
    }

private:
    [[gnu::noinline, gnu::cold]] void StopLooping(const Site& site)
    {
        if (aborted) {
            return;  // destructors of the kernel's objects
        }
        if (session.steps_allowed != 0) {
            Report("no-progress", site, Text("the core has made ", session.options.max_steps, " calls"));
            session.steps_allowed = 0;  // the other cores may wait for this one in loops of their own
        }
        Abort();
    }

    uint64_t steps_ = 0;
    Buffer raw_buffer_;
    Buffer scratch_;
    std::string scratch_filling_;
    std::deque<std::deque<Buffer>> retired_;
};

__attribute__((visibility("hidden"))) inline Core* g_core = nullptr;

inline Core& Self() { return *g_core; }

// Lets other cores run; the running core is restored on return.
inline void GiveWay(Core& core)
{
    core.session.scheduler.MaybeYield();
    g_core = &core;
}

}  // namespace moegrad::hostmodel
