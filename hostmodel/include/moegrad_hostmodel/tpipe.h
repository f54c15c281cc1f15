// TPipe, TBuf and the queues: placement of buffers in UB, and the state machine that orders their use.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "events.h"

namespace moegrad::hostmodel {

inline constexpr uint32_t kMaxBuffers = 64;
inline constexpr uint32_t kMaxLivePerPosition = 8;

inline uint32_t RoundUpToBlock(uint32_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

inline const char* PositionName(int position)
{
    switch (static_cast<AscendC::TPosition>(position)) {
        case AscendC::TPosition::VECIN: return "VECIN";
        case AscendC::TPosition::VECOUT: return "VECOUT";
        case AscendC::TPosition::VECCALC: return "VECCALC";
        default: return "this position";
    }
}

inline const char* StateName(TensorState state)
{
    switch (state) {
        case TensorState::kFree: return "FREE";
        case TensorState::kOccupied: return "OCCUPIED";
        case TensorState::kEnqueued: return "ENQUE";
        case TensorState::kDequeued: return "DEQUE";
        case TensorState::kUnmanaged: return "not of a queue";
    }
    return "";
}

// State, barrier, atomics and masks as a kernel finds them.
inline void ResetCoreState(Core& core)
{
    core.mask = {};
    core.mask_mode = AscendC::MaskMode::NORMAL;
    core.atomic = AtomicOp::kNone;
    core.atomic_type = ElementType::kNone;
}

inline bool PlaceBuffers(Core& core, std::vector<Buffer*>& out, uint32_t count, uint64_t bytes, int position,
                         const void* owner, const Site& site)
{
    const uint64_t rounded = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    const uint64_t total = core.ub_used + rounded * count;
    if (total > core.session.ub_budget()) {
        core.Report("ub-overflow", site,
                    Text(count, " x ", rounded, " bytes after ", core.ub_used, " make ", total, " of ",
                         core.session.ub_budget(), " bytes"));
    }
    if (total > UbMemory::kModelBytes) {
        core.Abort();
    }
    if (core.buffers.size() + count > kMaxBuffers) {
        core.Report("too-many-buffers", site, Text(core.buffers.size() + count, " buffers in all, 64 at most"));
    }
    for (uint32_t i = 0; i < count; ++i) {
        out.push_back(&core.AddBuffer(static_cast<uint32_t>(rounded), position, owner));
    }
    return total <= core.session.ub_budget();
}

struct QueueEvents {
    AscendC::HardEvent ready;  // set by EnQue, waited for by DeQue
    AscendC::HardEvent free;   // set by FreeTensor, waited for by the next AllocTensor of that buffer
};

constexpr QueueEvents EventsOf(AscendC::TPosition source, AscendC::TPosition destination)
{
    using AscendC::HardEvent;
    using AscendC::TPosition;
    if (source == TPosition::VECIN && destination == TPosition::VECOUT) {
        return {HardEvent::MTE2_MTE3, HardEvent::MTE3_MTE2};
    }
    if (destination == TPosition::VECOUT || source == TPosition::VECOUT) {
        return {HardEvent::V_MTE3, HardEvent::MTE3_V};
    }
    if (destination == TPosition::VECCALC && source == TPosition::VECCALC) {
        return {HardEvent::V_V, HardEvent::V_V};
    }
    return {HardEvent::MTE2_V, HardEvent::V_MTE2};
}

// A queue without its element type. It lives in the kernel; the core keeps the buffers.
class QueueBase {
public:
    QueueBase(QueueEvents events, int position, uint32_t depth) : events_(events), position_(position), depth_(depth) {}

    bool Init(Core& core, uint32_t count, uint64_t bytes, const Site& site)
    {
        buffers_.clear();
        const bool fits = PlaceBuffers(core, buffers_, count, bytes, position_, this, site);
        for (Buffer* buffer : buffers_) {
            buffer->state = TensorState::kFree;
        }
        return fits;
    }

    Buffer& Alloc(const Site& site)
    {
        Core& core = Self();
        Buffer* buffer = NextFree();
        if (buffer == nullptr) {
            core.Report("queue-alloc-hang", site, Text("none of the queue's ", buffers_.size(), " buffers is free"));
            core.Abort();
        }
        if (++core.live_buffers[position_] > kMaxLivePerPosition) {
            core.Report("too-many-buffers", site,
                        Text(core.live_buffers[position_], " buffers of ", PositionName(position_), " live at once"));
        }
        if (buffer->free_event >= 0) {
            WaitEvent(core, events_.free, buffer->free_event, site, true);
            DropEvent(core, events_.free, buffer->free_event, site);
            buffer->free_event = -1;
        }
        buffer->state = TensorState::kOccupied;
        buffer->generation += 1;
        core.ub.SetState({buffer->begin, buffer->end - buffer->begin}, kPoison);
        return *buffer;
    }

    bool Enqueue(const UbPlace& place, const Site& site)
    {
        Core& core = Self();
        if (!Owns(core, place, site)) {
            return false;
        }
        Buffer& buffer = *place.buffer;
        if (buffer.state != TensorState::kOccupied && buffer.state != TensorState::kDequeued) {
            core.Report("queue-enque-twice", site, Text("the buffer is ", StateName(buffer.state)));
            return false;
        }
        if (waiting_.size() >= (depth_ == 0 ? 1 : depth_)) {
            core.Report("queue-depth-exceeded", site,
                        Text(waiting_.size(), " tensors wait in a queue of depth ", depth_));
            return false;
        }
        int id = -1;
        if (events_.ready == AscendC::HardEvent::V_V) {
            core.pipes.Barrier(kV);
            core.counters.barriers += 1;
        } else {
            id = HoldEvent(core, events_.ready, site, true);
            SetEvent(core, events_.ready, id, site, true);
        }
        buffer.state = TensorState::kEnqueued;
        waiting_.push_back({&buffer, id, place});
        return true;
    }

    UbPlace Dequeue(const Site& site)
    {
        Core& core = Self();
        if (waiting_.empty()) {
            core.Report("queue-deque-empty", site, "the queue is empty");
            core.Abort();
        }
        const Waiting first = waiting_.front();
        waiting_.pop_front();
        if (first.event >= 0) {
            WaitEvent(core, events_.ready, first.event, site, true);
            DropEvent(core, events_.ready, first.event, site);
        }
        first.buffer->state = TensorState::kDequeued;
        UbPlace place = first.place;
        place.begin = first.buffer->begin;
        place.limit = first.buffer->end - first.buffer->begin;
        return place;
    }

    void Release(const UbPlace& place, const Site& site)
    {
        Core& core = Self();
        if (!Owns(core, place, site)) {
            return;
        }
        Buffer& buffer = *place.buffer;
        if (buffer.state == TensorState::kFree || place.generation != buffer.generation) {
            core.Report("queue-free-twice", site, Text("the buffer at UB offset ", buffer.begin, " is already free"));
            return;
        }
        if (events_.free == AscendC::HardEvent::V_V) {
            core.pipes.Barrier(kV);
        } else {
            buffer.free_event = HoldEvent(core, events_.free, site, true);
            SetEvent(core, events_.free, buffer.free_event, site, true);
        }
        buffer.state = TensorState::kFree;
        core.live_buffers[position_] -= 1;
    }

    bool HasIdle() const
    {
        for (const Buffer* buffer : buffers_) {
            if (buffer->state == TensorState::kFree) {
                return true;
            }
        }
        return false;
    }
    uint32_t waiting() const { return static_cast<uint32_t>(waiting_.size()); }
    uint32_t depth() const { return depth_; }

private:
    struct Waiting {
        Buffer* buffer;
        int event;
        UbPlace place;
    };

    Buffer* NextFree()
    {
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            Buffer* buffer = buffers_[(next_ + i) % buffers_.size()];
            if (buffer->state == TensorState::kFree) {
                next_ = (next_ + i + 1) % buffers_.size();
                return buffer;
            }
        }
        return nullptr;
    }

    bool Owns(Core& core, const UbPlace& place, const Site& site) const
    {
        if (place.buffer == nullptr || place.buffer->owner != this) {
            core.Report("queue-foreign-tensor", site, "the tensor was not allocated from this queue");
            return false;
        }
        return true;
    }

    QueueEvents events_;
    int position_;
    uint32_t depth_;
    std::vector<Buffer*> buffers_;
    std::deque<Waiting> waiting_;
    std::size_t next_ = 0;
};

inline void CheckQueuesAtEnd(Core& core, const Site& site)
{
    for (const Buffer& buffer : core.buffers) {
        if (buffer.state != TensorState::kUnmanaged && buffer.state != TensorState::kFree) {
            core.Report("queue-not-freed", site,
                        Text("a buffer of ", PositionName(buffer.position), " at UB offset ", buffer.begin, " is ",
                             StateName(buffer.state)));
        }
    }
}

}  // namespace moegrad::hostmodel
