// Checks that every vector and move operation makes on its UB operands before anything else.
#pragma once

#include <cstdint>
#include <string>

#include "tensor.h"

namespace moegrad::hostmodel {

// A byte address that is used before its checks have passed.
inline bool TensorAlive(Core& core, const Site& site, const UbPlace& place, const char* operand)
{
    if (place.buffer == nullptr) {
        core.Report("ub-out-of-bounds", site, Text(operand, " is a tensor that was never allocated"));
        return false;
    }
    const bool stale = place.generation != place.buffer->generation;
    if (stale || place.buffer->state == TensorState::kFree) {
        core.Report("queue-use-after-free", site,
                    Text(operand, " at UB offset ", place.begin, " was given back by FreeTensor"));
    }
    return true;
}

// Returns false when the operand starts off its boundary; the caller carries on at the rounded-down address.
inline bool Aligned(Core& core, const Site& site, const UbPlace& place, const char* operand, uint32_t alignment)
{
    if (place.begin % alignment == 0) {
        return true;
    }
    core.Report("ub-misaligned", site,
                Text(operand, " starts at UB byte ", place.begin, ", not a multiple of ", alignment));
    return false;
}

// All of [low, high) must lie in the block that InitBuffer placed.
inline bool InBounds(Core& core, const Site& site, const UbPlace& place, const char* operand, int64_t low, int64_t high)
{
    const Buffer& buffer = *place.buffer;
    if (low >= buffer.begin && high <= buffer.end && high <= UbMemory::kModelBytes) {
        return true;
    }
    core.Report("ub-out-of-bounds", site,
                Text(operand, " covers UB bytes [", low, ", ", high, ") of a buffer at [", buffer.begin, ", ",
                     buffer.end, ")"));
    return false;
}

inline bool SpansInBounds(Core& core, const Site& site, const UbPlace& place, const char* operand,
                          const SpanList& spans)
{
    return spans.empty() || InBounds(core, site, place, operand, spans.lowest(), spans.highest());
}

// What a store, a scalar read or another observer must not see.
inline const char* BadStateName(ByteState state)
{
    switch (state) {
        case kDummy: return "dummy-tail-read";
        case kUnwrittenGm: return "gm-uninitialised-read";
        default: return "ub-uninitialised-read";
    }
}

inline void CheckObserved(Core& core, const Site& site, const SpanList& spans, const char* what)
{
    for (const Span& span : spans) {
        const ByteState worst = core.ub.WorstState(span);
        if (worst == kInitialised) {
            continue;
        }
        const uint32_t at = core.ub.FirstInState(span, worst);
        const BlockLog& log = core.ub.log(at / kBlockBytes);
        std::string origin = "never written";
        for (const Pipe writer : kWriters) {
            if ((log.written(writer).mask >> at % kBlockBytes & 1) != 0) {
                origin = Text("last written by ", Describe(core.session.sites.at(log.written(writer).site)));
            }
        }
        core.Report(BadStateName(worst), site,
                    Text(what, " UB byte ", at, " (byte ", at - span.begin, " of ", span.bytes, "), ", origin));
        return;
    }
}

// A count parameter: on the device it is a 32-bit value.
inline bool CountOk(Core& core, const Site& site, int64_t count)
{
    if (count < 0 || count > (int64_t{1} << 31) - 1) {
        core.Report("count-out-of-range", site, Text("count is ", count));
        return false;
    }
    if (count == 0) {
        if (kIs3510) {
            core.Report("zero-count-3510", site, "count is 0");
        }
        return false;
    }
    return true;
}

}  // namespace moegrad::hostmodel
