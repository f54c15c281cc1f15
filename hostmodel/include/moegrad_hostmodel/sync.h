// Synchronisation of cores, block index, kernel type.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tque.h"

namespace moegrad::hostmodel {

// Everyone in |group| now comes after everything that each of them did before.
inline void MeetAt(std::vector<Core*>& group)
{
    for (Core* core : group) {
        core->known[core->index] += 1;
    }
    for (Core* core : group) {
        for (const Core* other : group) {
            for (std::size_t i = 0; i < core->known.size(); ++i) {
                const bool own = i == core->index;
                core->known[i] = own ? core->known[i] : std::max(core->known[i], other->known[i]);
            }
        }
    }
}

inline void Rendezvous(Core& core, const void* key, uint32_t count, const Site& site)
{
    Session& session = core.session;
    core.pipes.BarrierAll();
    core.counters.sync_alls += 1;
    std::vector<Core*>& group = session.arrived[key];
    group.push_back(&core);
    if (group.size() == count) {
        MeetAt(group);
        group.clear();
        session.scheduler.WakeAll();
        return;
    }
    const uint32_t phase = core.phase();
    while (core.phase() == phase) {
        session.scheduler.Park();
        g_core = &core;
        if (session.deadlocked) {
            core.Report("syncall-deadlock", site,
                        Text(group.size(), " of ", count, " cores arrived and the others have ended"));
            core.Abort();
        }
    }
}

inline void HardSyncAll(Core& core, const Site& site)
{
    Session& session = core.session;
    if (session.CurrentKind() != KernelKind::kMixVector) {
        core.Report("syncall-needs-mix", site, "the kernel type starts no scheduling module");
    }
    if (session.block_count > kVectorCores) {
        core.Report("syncall-too-many-blocks", site,
                    Text(session.block_count, " blocks on ", kVectorCores, " vector cores"));
        core.Abort();
    }
    Rendezvous(core, nullptr, session.block_count, site);
}

inline void SoftSyncAll(Core& core, const GmPlace& gm, const UbPlace& ub, int32_t used, const Site& site)
{
    Session& session = core.session;
    const uint32_t count = used == 0 ? session.block_count : static_cast<uint32_t>(used);
    const uint64_t bytes = uint64_t{session.block_count} * kBlockBytes;
    if (!GmInRange(core, site, gm, bytes, true)) {
        core.Report("syncall-workspace", site, Text("GM workspace holds less than ", bytes, " bytes"));
        core.Abort();
    }
    const bool fresh = session.arrived.count(gm.address()) == 0;
    if (fresh && !std::all_of(gm.address(), gm.address() + bytes, [](uint8_t byte) { return byte == 0; })) {
        core.Report("syncall-workspace", site, "the GM workspace is not zero");
    }
    if (ub.buffer == nullptr || ub.limit < static_cast<int64_t>(bytes)) {
        core.Report("syncall-workspace", site, Text("the UB workspace holds ", ub.limit, " of ", bytes, " bytes"));
    }
    if (count > kVectorCores) {
        core.Report("syncall-too-many-blocks", site, Text(count, " blocks on ", kVectorCores, " vector cores"));
        core.Abort();
    }
    Rendezvous(core, gm.address(), count, site);
}

}  // namespace moegrad::hostmodel

namespace AscendC {

inline int64_t GetBlockIdx() { return moegrad::hostmodel::Self().index; }
inline int64_t GetBlockNum() { return moegrad::hostmodel::Self().session.block_count; }
inline int64_t GetSubBlockIdx() { return 0; }
inline int64_t GetSubBlockNum() { return 1; }
inline int64_t GetTaskRation() { return 1; }

template <bool isAIVOnly = true>
void SyncAll(MGH_HERE)
{
    moegrad::hostmodel::HardSyncAll(moegrad::hostmodel::Self(), {"SyncAll", where});
}

template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
             const int32_t usedCores = 0, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    SoftSyncAll(Self(), PlaceOf(gmWorkspace), PlaceOf(ubWorkspace), usedCores, {"SyncAll", where});
}

}  // namespace AscendC

enum KernelMetaType {
    KERNEL_TYPE_AIV_ONLY,
    KERNEL_TYPE_AIC_ONLY,
    KERNEL_TYPE_MIX_AIV_1_0,
    KERNEL_TYPE_MIX_AIC_1_0,
    KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2,
};

namespace moegrad::hostmodel {

constexpr KernelKind KindOf(KernelMetaType type)
{
    return type == KERNEL_TYPE_AIV_ONLY || type == KERNEL_TYPE_AIC_ONLY ? KernelKind::kVectorOnly
                                                                      : KernelKind::kMixVector;
}

}  // namespace moegrad::hostmodel

#define KERNEL_TASK_TYPE_DEFAULT(type) \
    (::moegrad::hostmodel::Self().session.kind = ::moegrad::hostmodel::KindOf(type))
#define KERNEL_TASK_TYPE(key, type) \
    (::moegrad::hostmodel::Self().session.kind_of_key[key] = ::moegrad::hostmodel::KindOf(type))
