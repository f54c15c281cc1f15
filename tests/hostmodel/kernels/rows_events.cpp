// Rows 10 and 11 of the table in docs/hostmodel.md: event ids.
// A template has the mistake as <true> and is mended as <false>; unless stated otherwise it doubles N floats: y = 2 x.
#include "common.h"

using namespace common;

enum class Fault {
    kNone, kSetTwice, kNoSet, kRange, kReserved, kLeft, kClash, kNotAllocated, kFetched, kFetchedByQueue
};

template <Fault fault>
void events(GM_ADDR x, GM_ADDR y)
{
    Hand h(x, y);
    h.All();
    constexpr HardEvent kEvent = HardEvent::MTE3_V;
    if (fault == Fault::kSetTwice) {
        SetFlag<kEvent>(EVENT_ID1);
        SetFlag<kEvent>(EVENT_ID1);
        WaitFlag<kEvent>(EVENT_ID1);
    } else if (fault == Fault::kNoSet) {
        SetFlag<kEvent>(EVENT_ID1);
        WaitFlag<kEvent>(EVENT_ID2);
        WaitFlag<kEvent>(EVENT_ID1);
    } else if (fault == Fault::kRange) {
        h.Sync<kEvent>(8);
    } else if (fault == Fault::kReserved) {
        h.Sync<kEvent>(7);
    } else if (fault == Fault::kLeft) {
        SetFlag<kEvent>(EVENT_ID1);
    } else if (fault == Fault::kClash) {
        TQue<QuePosition::VECOUT, 1> queue;
        h.pipe.InitBuffer(queue, 1, 32);
        LocalTensor<float> t = queue.AllocTensor<float>();
        queue.FreeTensor(t);
        h.Sync<kEvent>(0);  // the queue holds MTE3_V id 0 until its buffer is allocated again
    } else if (fault == Fault::kNotAllocated) {
        const TEventID id = h.pipe.AllocEventID<kEvent>();
        h.pipe.ReleaseEventID<kEvent>(id);
        h.pipe.ReleaseEventID<kEvent>(id);
    } else if (fault == Fault::kFetched) {
        const auto first = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
        SetFlag<kEvent>(first);
        const auto second = static_cast<event_t>(GetTPipePtr()->FetchEventID(kEvent));
        SetFlag<kEvent>(second);
        WaitFlag<kEvent>(first);
    } else if (fault == Fault::kFetchedByQueue) {
        const TEventID id = h.pipe.FetchEventID(HardEvent::MTE3_V);
        SetFlag<kEvent>(id);
        TQue<QuePosition::VECOUT, 1> queue;
        h.pipe.InitBuffer(queue, 1, 32);
        LocalTensor<float> t = queue.AllocTensor<float>();
        queue.FreeTensor(t);
        t = queue.AllocTensor<float>();
        queue.FreeTensor(t);
    } else {
        const TEventID first = h.pipe.AllocEventID<kEvent>();
        SetFlag<kEvent>(first);
        const TEventID second = h.pipe.AllocEventID<kEvent>();
        SetFlag<kEvent>(second);
        WaitFlag<kEvent>(first);
        WaitFlag<kEvent>(second);
        h.pipe.ReleaseEventID<kEvent>(first);
        h.pipe.ReleaseEventID<kEvent>(second);
    }
}
MOEGRAD_HOSTMODEL_KERNEL_AS(events_mended, events<Fault::kNone>)
MOEGRAD_HOSTMODEL_KERNEL_AS(set_twice_faulty, events<Fault::kSetTwice>)
MOEGRAD_HOSTMODEL_KERNEL_AS(wait_without_set_faulty, events<Fault::kNoSet>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_range_faulty, events<Fault::kRange>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_reserved_faulty, events<Fault::kReserved>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_left_faulty, events<Fault::kLeft>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_clash_faulty, events<Fault::kClash>)
MOEGRAD_HOSTMODEL_KERNEL_AS(event_not_allocated_faulty, events<Fault::kNotAllocated>)
MOEGRAD_HOSTMODEL_KERNEL_AS(fetched_twice_faulty, events<Fault::kFetched>)
MOEGRAD_HOSTMODEL_KERNEL_AS(fetched_by_queue_faulty, events<Fault::kFetchedByQueue>)
