// One launch: its switches, its memory, its findings, and what the cores share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "counters.h"
#include "diagnostics.h"
#include "fibres.h"
#include "float16.h"
#include "gm_memory.h"

namespace moegrad::hostmodel {

enum class KernelKind : uint8_t { kUnknown, kVectorOnly, kMixVector };

// API calls that a core may make: MOEGRAD_HOST_STEPS, or what takes some ten seconds when they are short.
inline uint64_t DefaultMaxSteps()
{
    const char* chosen = std::getenv("MOEGRAD_HOST_STEPS");
    return chosen == nullptr ? uint64_t{1} << 25 : std::strtoull(chosen, nullptr, 10);
}

struct Options {
    uint64_t seed = 0;        // 0: everything as late as possible, cores one after another; else a varying interleaving
    bool saturate = false;    // half and bfloat16 results: clamp and NaN to 0, instead of infinity and NaN
    bool auto_sync = true;    // what --cce-auto-sync=on inserts: scalar to and from the other pipes, and V to V
    bool strict_ub = false;   // the budget without the 8 KiB that some APIs reserve on 2201
    bool fused_mac = false;   // Axpy, MulAddDst, FusedMulAdd: one rounding instead of two (not documented which)
    std::size_t max_diagnostics = 1000;
    uint64_t max_steps = DefaultMaxSteps();  // API calls after which a core is taken to loop for ever; 0: no bound
};

class Core;

struct Session {
    explicit Session(const Options& chosen)
        : options(chosen), diagnostics(chosen.max_diagnostics), scheduler(chosen.seed),
          steps_allowed(chosen.max_steps == 0 ? ~uint64_t{0} : chosen.max_steps)
    {
    }

    Options options;
    Diagnostics diagnostics;
    SiteTable sites;
    GmMemory gm;
    Scheduler scheduler;
    uint64_t steps_allowed;  // of each core; none once a core has run out of them
    uint32_t block_count = 1;
    KernelKind kind = KernelKind::kUnknown;
    std::map<uint64_t, KernelKind> kind_of_key;
    uint64_t tiling_key = 0;
    const void* tiling_type = nullptr;  // identity of the host's struct, when the host is C++ too
    Counters counters;
    ModelledTime time;

    bool scalar_stores = false;  // some core wrote global memory through its scalar cache

    // Cores that have arrived at a SyncAll, by what they wait on (nullptr: the hard one).
    std::map<const void*, std::vector<Core*>> arrived;
    bool deadlocked = false;

    uint32_t ub_budget() const { return options.strict_ub ? kStrictUbBytes : kUbBytes; }
    KernelKind CurrentKind() const
    {
        const auto specific = kind_of_key.find(tiling_key);
        return specific == kind_of_key.end() ? kind : specific->second;
    }
};

}  // namespace moegrad::hostmodel
