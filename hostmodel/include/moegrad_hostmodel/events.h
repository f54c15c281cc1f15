// Event flags and barriers: the table of eight ids per event type, and what may go wrong with it.
#pragma once

#include <cstdint>
#include <string>

#include "scalar.h"

namespace moegrad::hostmodel {

inline std::string EventName(AscendC::HardEvent event, int id)
{
    return Text("HardEvent::", kEventNames[static_cast<int>(event)], " id ", id);
}

inline EventSlot* SlotOf(Core& core, AscendC::HardEvent event, int id, const Site& site)
{
    if (id < 0 || id > 7) {
        core.Report("event-id-out-of-range", site, EventName(event, id));
        return nullptr;
    }
    return &core.events[static_cast<int>(event)][static_cast<uint32_t>(id)];
}

inline void CheckUserId(Core& core, AscendC::HardEvent event, int id, const EventSlot& slot, const Site& site)
{
    if (slot.by_queue) {
        core.Report("event-id-clash", site, Text(EventName(event, id), " is held by a queue"));
    }
    if (id >= 6 && !slot.held) {
        core.Report("event-id-reserved", site, EventName(event, id));
    }
}

inline void CheckSetTwice(Core& core, AscendC::HardEvent event, int id, const EventSlot& slot, const Site& site)
{
    if (slot.set) {
        core.Report(slot.fetched ? "fetched-event-id-reused" : "event-set-twice", site,
                    Text(EventName(event, id), " is still set by ", Describe(core.session.sites.at(slot.set_site))));
    }
}

inline void SetEvent(Core& core, AscendC::HardEvent event, int id, const Site& site, bool by_queue)
{
    core.Step(site);
    EventSlot* slot = SlotOf(core, event, id, site);
    if (slot == nullptr) {
        return;
    }
    if (!by_queue) {
        CheckUserId(core, event, id, *slot, site);
    }
    CheckSetTwice(core, event, id, *slot, site);
    slot->set = true;
    slot->set_site = core.session.sites.Intern(site);
    slot->token = core.pipes.Set(PipesOf(event).source);
    core.counters.events_set += 1;
}

inline void WaitEvent(Core& core, AscendC::HardEvent event, int id, const Site& site, bool by_queue)
{
    EventSlot* slot = SlotOf(core, event, id, site);
    if (slot == nullptr) {
        return;
    }
    if (!by_queue && !slot->set) {
        CheckUserId(core, event, id, *slot, site);
    }
    if (!slot->set) {
        core.Report("event-wait-without-set", site, Text(EventName(event, id), " was not set"));
        return;
    }
    slot->set = false;
    if (!slot->held) {
        slot->fetched = false;
    }
    core.pipes.Wait(PipesOf(event).waiter, slot->token);
    core.counters.events_waited += 1;
}

inline int LowestFreeEvent(Core& core, AscendC::HardEvent event)
{
    const auto& slots = core.events[static_cast<int>(event)];
    for (int id = 0; id < 8; ++id) {
        if (!slots[static_cast<uint32_t>(id)].held) {
            return id;
        }
    }
    return -1;
}

inline int HoldEvent(Core& core, AscendC::HardEvent event, const Site& site, bool by_queue)
{
    const int id = LowestFreeEvent(core, event);
    if (id < 0) {
        core.Report("too-many-buffers", site,
                    Text("all 8 ids of HardEvent::", kEventNames[static_cast<int>(event)], " are taken"));
        core.Abort();
    }
    EventSlot& slot = core.events[static_cast<int>(event)][static_cast<uint32_t>(id)];
    slot.held = true;
    slot.by_queue = by_queue;
    if (by_queue && slot.set) {
        core.Report(slot.fetched ? "fetched-event-id-reused" : "event-id-clash", site,
                    Text("the queue takes ", EventName(event, id), ", which is set by ",
                         Describe(core.session.sites.at(slot.set_site))));
        slot.set = false;
    }
    slot.fetched = false;
    return id;
}

inline void DropEvent(Core& core, AscendC::HardEvent event, int id, const Site& site)
{
    EventSlot* slot = SlotOf(core, event, id, site);
    if (slot == nullptr) {
        return;
    }
    if (!slot->held) {
        core.Report("event-id-not-allocated", site, EventName(event, id));
    }
    slot->held = false;
    slot->by_queue = false;
}

inline void CheckEventsAtEnd(Core& core)
{
    for (int event = 0; event < kEventTypes; ++event) {
        for (int id = 0; id < 8; ++id) {
            const EventSlot& slot = core.events[static_cast<uint32_t>(event)][static_cast<uint32_t>(id)];
            if (slot.set && !slot.by_queue) {
                core.Report("event-left-set", core.session.sites.at(slot.set_site),
                            Text(EventName(static_cast<AscendC::HardEvent>(event), id), " is set at kernel end"));
            }
        }
    }
}

inline void Barrier(Core& core, pipe_t pipe, const Site& site)
{
    core.Step(site);
    if (pipe == PIPE_ALL) {
        core.pipes.BarrierAll();
        core.counters.barriers_all += 1;
        core.drained_last = true;
        return;
    }
    if (pipe == PIPE_V || pipe == PIPE_MTE2 || pipe == PIPE_MTE3) {
        core.pipes.Barrier(pipe == PIPE_V ? kV : pipe == PIPE_MTE2 ? kMte2 : kMte3);
    }
    core.counters.barriers += 1;
}

}  // namespace moegrad::hostmodel

namespace AscendC {

template <HardEvent event>
void SetFlag(int32_t eventID, MGH_HERE)
{
    static_assert(moegrad::hostmodel::PipesOf(event).vector_core, "unsupported-event: a vector core has no cube pipes");
    moegrad::hostmodel::SetEvent(moegrad::hostmodel::Self(), event, eventID, {"SetFlag", where}, false);
}

template <HardEvent event>
void WaitFlag(int32_t eventID, MGH_HERE)
{
    static_assert(moegrad::hostmodel::PipesOf(event).vector_core, "unsupported-event: a vector core has no cube pipes");
    moegrad::hostmodel::WaitEvent(moegrad::hostmodel::Self(), event, eventID, {"WaitFlag", where}, false);
}

template <pipe_t pipe>
void PipeBarrier(MGH_HERE)
{
    static_assert(pipe != PIPE_S, "PipeBarrier does not take PIPE_S: the scalar pipe is in order");
    moegrad::hostmodel::Barrier(moegrad::hostmodel::Self(), pipe, {"PipeBarrier", where});
}

}  // namespace AscendC
