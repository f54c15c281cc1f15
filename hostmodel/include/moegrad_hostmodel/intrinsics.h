// Spellings of the compiler's own: older kernels call them beside the API.
#pragma once

#include <cstdint>

#include "state.h"

namespace moegrad::hostmodel {

constexpr bool Names(pipe_t name, Pipe pipe)
{
    return name == (pipe == kS ? PIPE_S : pipe == kV ? PIPE_V : pipe == kMte2 ? PIPE_MTE2 : PIPE_MTE3);
}

// The event between two pipes; of one that a vector core has not, the id is out of range.
inline AscendC::HardEvent EventBetween(pipe_t source, pipe_t waiter, const Site& site)
{
    for (int i = 0; i < kEventTypes; ++i) {
        const EventPipes pipes = PipesOf(static_cast<AscendC::HardEvent>(i));
        if (Names(source, pipes.source) && Names(waiter, pipes.waiter)) {
            return static_cast<AscendC::HardEvent>(i);
        }
    }
    Self().Report("event-id-out-of-range", site, Text("no event between pipes ", int{source}, " and ", int{waiter}));
    Self().Abort();
}

// `block_idx`; a kernel's own variable of the name hides it.
struct BlockIndex {
    operator int64_t() const { return AscendC::GetBlockIdx(); }
};

}  // namespace moegrad::hostmodel

inline constexpr moegrad::hostmodel::BlockIndex block_idx{};

inline int64_t get_block_idx() { return AscendC::GetBlockIdx(); }
inline int64_t get_block_num() { return AscendC::GetBlockNum(); }

inline void pipe_barrier(pipe_t pipe, MGH_HERE)
{
    moegrad::hostmodel::Barrier(moegrad::hostmodel::Self(), pipe, {"pipe_barrier", where});
}

inline void set_flag(pipe_t source, pipe_t waiter, int32_t id, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    const Site site{"set_flag", where};
    SetEvent(Self(), EventBetween(source, waiter, site), id, site, false);
}

inline void wait_flag(pipe_t source, pipe_t waiter, int32_t id, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    const Site site{"wait_flag", where};
    WaitEvent(Self(), EventBetween(source, waiter, site), id, site, false);
}

inline void set_mask_norm() { AscendC::SetMaskNorm(); }
inline void set_mask_count(MGH_HERE) { AscendC::SetMaskCount(where); }
inline void set_vector_mask(uint64_t high, uint64_t low, MGH_HERE)
{
    AscendC::SetVectorMask<uint8_t>(high, low, where);
}
inline void set_atomic_none() { AscendC::SetAtomicNone(); }

namespace AscendC {

inline constexpr int AIC = 1;
inline constexpr int AIV = 2;
inline constexpr int g_coreType = AIV;

}  // namespace AscendC

// Which kind of core runs: `if ASCEND_IS_AIV { ... }`.
#define ASCEND_IS_AIV constexpr(true)
#define ASCEND_IS_AIC constexpr(false)

// Marks for the profiler of the simulator.
#define TRACE_START(mark) static_cast<void>(mark)
#define TRACE_STOP(mark) static_cast<void>(mark)
