// The engine below all elementwise vector instructions: checks, order, state of the result, and the work itself.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "lanes.h"

namespace moegrad::hostmodel {

template <typename T>
T LoadElement(Core& core, int64_t address)
{
    T value;
    std::memcpy(&value, core.ub.data(static_cast<uint32_t>(address)), sizeof(T));
    return value;
}

template <typename T>
void StoreElement(Core& core, int64_t address, T value)
{
    std::memcpy(core.ub.data(static_cast<uint32_t>(address)), &value, sizeof(T));
}

inline ByteState ElementState(Core& core, int64_t address, uint32_t width)
{
    return core.ub.WorstState({static_cast<uint32_t>(address), width});
}

struct VectorCall {
    Site site;
    Lanes lanes;
    bool accumulates = false;  // Add, Sub, Mul, Max, Min may use a destination as src1 across repeats
    const char* overlap_name = "partial-overlap";
};

// Alignment, bounds and life of one operand; afterwards |begin| is an address that is safe to use.
inline bool PrepareOperand(Core& core, const VectorCall& call, Operand& operand, uint32_t alignment = kBlockBytes)
{
    if (!TensorAlive(core, call.site, operand.place, operand.name)) {
        return false;
    }
    Aligned(core, call.site, operand.place, operand.name, alignment);
    operand.begin = operand.begin / alignment * alignment;
    return ExtentInBounds(core, call.site, operand, call.lanes);
}

inline constexpr std::size_t kMaxSources = 3;

// The sources of a call and the byte ranges that they cover. Not a template: only the arithmetic is compiled per call.
struct SourceSet {
    Operand* operands;
    std::size_t count;
    std::array<SpanList, kMaxSources> spans{};
};

inline bool AllInitialised(Core& core, const SourceSet& sources)
{
    for (std::size_t i = 0; i < sources.count; ++i) {
        for (const Span& span : sources.spans[i]) {
            if (core.ub.WorstState(span) != kInitialised) {
                return false;
            }
        }
    }
    return true;
}

// The result of a lane is as bad as its worst source.
inline void NoteResultStates(Core& core, const Lanes& lanes, const Operand& destination, const SourceSet& sources,
                             const SpanList& writes)
{
    if (AllInitialised(core, sources)) {
        for (const Span& span : writes) {
            core.ub.SetState(span, kInitialised);
        }
        return;
    }
    lanes.ForEach([&](uint32_t repeat, uint32_t lane) {
        ByteState worst = kInitialised;
        for (std::size_t i = 0; i < sources.count; ++i) {
            const Operand& source = sources.operands[i];
            worst = std::max(worst, ElementState(core, source.At(repeat, lane), source.width));
        }
        core.ub.SetState({static_cast<uint32_t>(destination.At(repeat, lane)), destination.width}, worst);
    });
}

inline void CheckOverlaps(Core& core, const VectorCall& call, const Operand& destination, const SourceSet& sources,
                          const SpanList& writes)
{
    for (std::size_t i = 0; i < sources.count; ++i) {
        const Operand& source = sources.operands[i];
        if (RangesMeet(writes, sources.spans[i]) &&
            !OverlapAllowed(destination, source, call.lanes, call.accumulates && i == 1)) {
            core.Report(call.overlap_name, call.site,
                        Text("dst from UB byte ", destination.begin, " meets ", source.name, " from ", source.begin));
        }
    }
}

// All checks of an elementwise call, and its place in the order of things. No value: the call cannot run.
inline std::optional<Issue> OrderElementwise(const VectorCall& call, Operand& destination, Operand* operands,
                                             std::size_t count)
{
    Core& core = Self();
    SourceSet sources{operands, count};
    bool usable = PrepareOperand(core, call, destination);
    for (std::size_t i = 0; i < count; ++i) {
        usable = PrepareOperand(core, call, operands[i]) && usable;
    }
    if (!usable) {
        return std::nullopt;
    }
    const SpanList writes = SpansOf(destination, call.lanes);
    for (std::size_t i = 0; i < count; ++i) {
        sources.spans[i] = SpansOf(operands[i], call.lanes);
    }
    CheckOverlaps(core, call, destination, sources, writes);
    Issue issue(core, kV, call.site);
    for (std::size_t i = 0; i < count; ++i) {
        issue.Check(sources.spans[i], {});
    }
    issue.Check({}, writes);
    for (std::size_t i = 0; i < count; ++i) {
        issue.Note(sources.spans[i], {});
    }
    issue.Note({}, writes);
    NoteResultStates(core, call.lanes, destination, sources, writes);
    core.counters.vector_ops += 1;
    core.counters.vector_repeats += call.lanes.repeats;
    return issue;
}

// Every active lane in order; the common case of whole contiguous operands needs no strides.
template <std::size_t N, typename F>
void RunLanes(Core& core, const Lanes& lanes, const Operand& destination, const std::array<Operand, N>& sources,
              const F& run_lane)
{
    std::array<int64_t, N> from;
    bool contiguous = lanes.total >= 0 && destination.Contiguous(lanes);
    for (const Operand& source : sources) {
        contiguous = contiguous && source.Contiguous(lanes);
    }
    if (contiguous) {
        for (int64_t i = 0; i < lanes.total; ++i) {
            for (std::size_t s = 0; s < N; ++s) {
                from[s] = sources[s].begin + i * sources[s].width;
            }
            run_lane(core, destination.begin + i * destination.width, from);
        }
        return;
    }
    lanes.ForEach([&](uint32_t repeat, uint32_t lane) {
        for (std::size_t s = 0; s < N; ++s) {
            from[s] = sources[s].At(repeat, lane);
        }
        run_lane(core, destination.At(repeat, lane), from);
    });
}

// Issues dst = f(sources...) for every active lane. |run_lane(core, dst address, source addresses)| does one lane.
template <std::size_t N, typename F>
void IssueElementwise(const VectorCall& call, Operand destination, std::array<Operand, N> sources, F run_lane)
{
    static_assert(N <= kMaxSources, "room for more sources is needed");
    std::optional<Issue> issue = OrderElementwise(call, destination, sources.data(), N);
    if (issue) {
        issue->Commit([lanes = call.lanes, destination, sources, run_lane, &core = Self()] {
            RunLanes(core, lanes, destination, sources, run_lane);
        });
    }
}

// ---- typed front ends ----

// What a floating result becomes in element type T, in the mode of this launch.
template <typename T>
T RoundResult(double value, bool saturate)
{
    return NarrowTo<T>(value, Rounding::kNearestEven, saturate);
}

// Arithmetic of one element. float is computed in float; half and bfloat16 round once from float.
template <typename T, typename F>
T Compute(bool saturate, F f, T a, T b)
{
    if constexpr (kIsHalf<T> || kIsBfloat16<T>) {
        return RoundResult<T>(f(static_cast<float>(Widen(a)), static_cast<float>(Widen(b))), saturate);
    } else {
        (void)saturate;
        return static_cast<T>(f(a, b));
    }
}

template <typename T, typename F>
auto BinaryLane(bool saturate, F f)
{
    return [saturate, f](Core& core, int64_t to, const std::array<int64_t, 2>& from) {
        StoreElement<T>(core, to,
                        Compute<T>(saturate, f, LoadElement<T>(core, from[0]), LoadElement<T>(core, from[1])));
    };
}

template <typename T, typename F>
auto UnaryLane(bool saturate, F f)
{
    return [saturate, f](Core& core, int64_t to, const std::array<int64_t, 1>& from) {
        const auto one = [f](auto a, auto) { return f(a); };
        const T a = LoadElement<T>(core, from[0]);
        StoreElement<T>(core, to, Compute<T>(saturate, one, a, a));
    };
}

template <typename T, typename F>
auto ScalarLane(bool saturate, F f, T scalar)
{
    return [saturate, f, scalar](Core& core, int64_t to, const std::array<int64_t, 1>& from) {
        StoreElement<T>(core, to, Compute<T>(saturate, f, LoadElement<T>(core, from[0]), scalar));
    };
}

}  // namespace moegrad::hostmodel
