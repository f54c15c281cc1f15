// Reductions: sums, maxima and minima of data blocks, repeats, neighbours and whole tensors, in the documented order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "arithmetic.h"

namespace moegrad::hostmodel {

template <typename T>
inline constexpr bool kReducible = kOneOf<T, half, float>;

// A binary tree over lanes in order: ((1+2)+(3+4))+... Lanes that do not take part are passed over.
template <typename T, typename F>
std::optional<T> Tree(std::vector<std::optional<T>> values, F combine)
{
    while (values.size() > 1) {
        std::vector<std::optional<T>> next((values.size() + 1) / 2);
        for (std::size_t i = 0; i < next.size(); ++i) {
            const std::optional<T> a = values[2 * i];
            const std::optional<T> b = 2 * i + 1 < values.size() ? values[2 * i + 1] : std::nullopt;
            next[i] = a && b ? std::optional<T>(combine(*a, *b)) : a ? a : b;
        }
        values = std::move(next);
    }
    return values.empty() ? std::nullopt : values[0];
}

template <typename T, typename Op>
auto Combiner(Op op)
{
    return [op, saturate = Self().saturate](T a, T b) { return Compute<T>(saturate, op, a, b); };
}

// How many lanes make one result, and where results go.
enum class Grain : uint8_t { kRepeat, kBlock, kPair };

struct ReduceCall {
    Site site;
    Lanes lanes;
    Operand source;
    Operand destination;
    Grain grain = Grain::kRepeat;
    uint32_t group = 64;      // lanes for one result
    int64_t result_step = 4;  // bytes between results of neighbouring repeats

    uint32_t groups() const { return lanes.per_repeat / group; }
    int64_t ResultAt(uint32_t repeat, uint32_t g) const
    {
        return destination.begin + repeat * result_step + int64_t{g} * destination.width;
    }
    bool AnyActive(uint32_t repeat, uint32_t g) const
    {
        for (uint32_t lane = g * group; lane < (g + 1) * group; ++lane) {
            if (lanes.Active(repeat, lane)) {
                return true;
            }
        }
        return false;
    }
    // A group with no active lane is left alone on 2201 and zeroed on 3510.
    bool Writes(uint32_t repeat, uint32_t g) const { return kIs3510 || AnyActive(repeat, g); }

    template <typename F>
    void ForGroups(F visit) const
    {
        for (uint32_t repeat = 0; repeat < lanes.repeats; ++repeat) {
            for (uint32_t g = 0; g < groups(); ++g) {
                if (Writes(repeat, g)) {
                    visit(repeat, g);
                }
            }
        }
    }
};

inline SpanList ResultSpans(const ReduceCall& call)
{
    SpanList spans;
    call.ForGroups([&](uint32_t repeat, uint32_t g) {
        spans.Add(static_cast<uint32_t>(call.ResultAt(repeat, g)), call.destination.width);
    });
    return spans;
}

inline bool ResultsInBounds(Core& core, const ReduceCall& call)
{
    int64_t low = INT64_MAX;
    int64_t high = 0;
    call.ForGroups([&](uint32_t repeat, uint32_t g) {
        low = std::min(low, call.ResultAt(repeat, g));
        high = std::max(high, call.ResultAt(repeat, g) + call.destination.width);
    });
    return high == 0 || InBounds(core, call.site, call.destination.place, "dst", low, high);
}

inline void NoteReducedStates(Core& core, const ReduceCall& call)
{
    call.ForGroups([&](uint32_t repeat, uint32_t g) {
        ByteState worst = kInitialised;
        for (uint32_t lane = g * call.group; lane < (g + 1) * call.group; ++lane) {
            if (call.lanes.Active(repeat, lane)) {
                worst = std::max(worst, ElementState(core, call.source.At(repeat, lane), call.source.width));
            }
        }
        core.ub.SetState({static_cast<uint32_t>(call.ResultAt(repeat, g)), call.destination.width}, worst);
    });
}

template <typename T, typename F>
void RunReduce(Core& core, const ReduceCall& call, F combine)
{
    std::vector<std::optional<T>> values(call.group);
    call.ForGroups([&](uint32_t repeat, uint32_t g) {
        for (uint32_t i = 0; i < call.group; ++i) {
            const uint32_t lane = g * call.group + i;
            values[i] = call.lanes.Active(repeat, lane)
                            ? std::optional<T>(LoadElement<T>(core, call.source.At(repeat, lane)))
                            : std::nullopt;
        }
        StoreElement<T>(core, call.ResultAt(repeat, g), Tree<T>(values, combine).value_or(T(0)));
    });
}

inline uint32_t ReduceAlignment(Grain grain, uint32_t width)
{
    switch (grain) {
        case Grain::kRepeat: return width;
        case Grain::kBlock: return width == 2 ? 16 : kBlockBytes;
        case Grain::kPair: return kBlockBytes;
    }
    return kBlockBytes;
}

// Does the call, with mask and repeat as given, read only what was written and stay inside its buffers?
inline bool Plausible(Core& core, const ReduceCall& call, int64_t mask, int64_t repeats)
{
    if (mask < 1 || mask > call.lanes.per_repeat || repeats < 1 || repeats > 255) {
        return false;
    }
    const Buffer& source = *call.source.place.buffer;
    for (int64_t repeat = 0; repeat < repeats; ++repeat) {
        const int64_t begin = call.source.begin + repeat * call.source.repeat_step;
        const int64_t end = begin + mask * call.source.width;
        if (begin < source.begin || end > source.end ||
            core.ub.WorstState({static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)}) != kInitialised) {
            return false;
        }
    }
    const int64_t last = call.destination.begin + (repeats - 1) * call.result_step + call.destination.width;
    return last <= call.destination.place.buffer->end;
}

// Block and Pair take (repeat, mask), Whole takes (mask, repeat): a call that only makes sense the other way round.
inline bool LooksSwapped(Core& core, const ReduceCall& call, int64_t mask, int64_t repeats)
{
    return mask != repeats && call.source.place.buffer != nullptr && call.destination.place.buffer != nullptr &&
           !Plausible(core, call, mask, repeats) && Plausible(core, call, repeats, mask);
}

// All checks of a reduction, and its place in the order of things. No value: the call cannot run.
inline std::optional<Issue> OrderReduce(ReduceCall& call)
{
    Core& core = Self();
    VectorCall checks;
    checks.site = call.site;
    checks.lanes = call.lanes;
    const uint32_t alignment = ReduceAlignment(call.grain, call.destination.width);
    const bool source_ok = PrepareOperand(core, checks, call.source);
    if (!TensorAlive(core, call.site, call.destination.place, "dst") || !source_ok) {
        return std::nullopt;
    }
    Aligned(core, call.site, call.destination.place, "dst", alignment);
    call.destination.begin = call.destination.begin / alignment * alignment;
    if (!ResultsInBounds(core, call)) {
        return std::nullopt;
    }
    const SpanList reads = SpansOf(call.source, call.lanes);
    const SpanList writes = ResultSpans(call);
    Issue issue(core, kV, call.site);
    issue.Check(reads, writes);
    issue.Note(reads, writes);
    NoteReducedStates(core, call);
    core.counters.vector_ops += 1;
    core.counters.reduce_repeats += call.lanes.repeats;
    return issue;
}

template <typename T, typename Op>
void IssueReduce(ReduceCall call, Op op)
{
    std::optional<Issue> issue = OrderReduce(call);
    if (issue) {
        issue->Commit([call, combine = Combiner<T>(op), &core = Self()] { RunReduce<T>(core, call, combine); });
    }
}

template <typename T>
ReduceCall MakeReduce(const char* api, const Where& where, Grain grain, const UbPlace& dst, const UbPlace& src,
                      int64_t dst_rep, int64_t src_blk, int64_t src_rep)
{
    constexpr uint32_t width = sizeof(T);
    ReduceCall call;
    call.site = {api, where};
    call.grain = grain;
    call.lanes.per_repeat = kRepeatBytes / width;
    call.source = RepeatOperand(src, "src", width, src_blk, src_rep);
    call.destination = RepeatOperand(dst, "dst", width, 1, 1);
    call.group = grain == Grain::kRepeat ? call.lanes.per_repeat : grain == Grain::kBlock ? kBlockBytes / width : 2;
    // Units differ: elements for a whole repeat, eight results for blocks, half a repeat for pairs.
    const int64_t unit = grain == Grain::kRepeat ? width : grain == Grain::kBlock ? 8 * width : kRepeatBytes / 2;
    call.result_step = dst_rep * unit;
    return call;
}

template <typename T, bool set_mask, typename Op>
void ReduceRepeats(ReduceCall call, const MaskArgument& mask, int64_t repeats, Op op)
{
    Core& core = Self();
    const bool counted = mask.count >= 0 && core.mask_mode == AscendC::MaskMode::NORMAL;
    if (counted && LooksSwapped(core, call, mask.count, repeats)) {
        core.Report("reduce-mask-repeat-swapped", call.site,
                    Text("mask ", mask.count, " and repeat ", repeats, " only fit the tensors the other way round"));
    }
    if (RepeatLanes(core, call.site, call.lanes, sizeof(T), set_mask, mask, repeats)) {
        IssueReduce<T>(call, op);
    }
}

}  // namespace moegrad::hostmodel

namespace AscendC {

// Old names, with mask and repeat in their old places: Block, Pair and Repeat take (repeat, mask).
#define MGH_REDUCE_REPEAT_MASK(Name, kind, Functor)                                                                   \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t repeat, const int64_t mask,         \
              const int64_t dstRepStride, const int64_t srcBlkStride, const int64_t srcRepStride, MGH_HERE)           \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, #Name);                                                  \
        using namespace moegrad::hostmodel;                                                                           \
        ReduceRepeats<T, isSetMask>(MakeReduce<T>(#Name, where, kind, PlaceOf(dst), PlaceOf(src), dstRepStride,       \
                                                  srcBlkStride, srcRepStride),                                        \
                                    static_cast<uint64_t>(mask), repeat, Functor{});                                  \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t repeat, const uint64_t mask[],      \
              const int64_t dstRepStride, const int64_t srcBlkStride, const int64_t srcRepStride, MGH_HERE)           \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, #Name);                                                  \
        using namespace moegrad::hostmodel;                                                                           \
        ReduceRepeats<T, isSetMask>(MakeReduce<T>(#Name, where, kind, PlaceOf(dst), PlaceOf(src), dstRepStride,       \
                                                  srcBlkStride, srcRepStride),                                        \
                                    mask, repeat, Functor{});                                                         \
    }

// (mask, repeat), for the old Whole forms and all 9.1 names.
#define MGH_REDUCE_MASK_REPEAT(Declaration, Name, kind, Functor)                                                      \
    Declaration void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t mask,                   \
                          const int64_t repeat, const int64_t dstRepStride, const int64_t srcBlkStride,               \
                          const int64_t srcRepStride, MGH_HERE)                                                       \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, #Name);                                                  \
        using namespace moegrad::hostmodel;                                                                           \
        ReduceRepeats<T, isSetMask>(MakeReduce<T>(#Name, where, kind, PlaceOf(dst), PlaceOf(src), dstRepStride,       \
                                                  srcBlkStride, srcRepStride),                                        \
                                    static_cast<uint64_t>(mask), repeat, Functor{});                                  \
    }                                                                                                                 \
    Declaration void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[],                \
                          const int64_t repeat, const int64_t dstRepStride, const int64_t srcBlkStride,               \
                          const int64_t srcRepStride, MGH_HERE)                                                       \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, #Name);                                                  \
        using namespace moegrad::hostmodel;                                                                           \
        ReduceRepeats<T, isSetMask>(MakeReduce<T>(#Name, where, kind, PlaceOf(dst), PlaceOf(src), dstRepStride,       \
                                                  srcBlkStride, srcRepStride),                                        \
                                    mask, repeat, Functor{});                                                         \
    }

#define MGH_PLAIN_TEMPLATE template <typename T, bool isSetMask = true>
#define MGH_TYPED_TEMPLATE template <ReduceType type, typename T, bool isSetMask = true>

}  // namespace AscendC

namespace moegrad::hostmodel {

template <AscendC::ReduceType type>
struct ReduceOp : AddOp {};
template <>
struct ReduceOp<AscendC::ReduceType::MAX> : MaxOp {};
template <>
struct ReduceOp<AscendC::ReduceType::MIN> : MinOp {};

}  // namespace moegrad::hostmodel

namespace AscendC {

MGH_REDUCE_REPEAT_MASK(BlockReduceSum, Grain::kBlock, AddOp)
MGH_REDUCE_REPEAT_MASK(BlockReduceMax, Grain::kBlock, MaxOp)
MGH_REDUCE_REPEAT_MASK(BlockReduceMin, Grain::kBlock, MinOp)
MGH_REDUCE_REPEAT_MASK(PairReduceSum, Grain::kPair, AddOp)
MGH_REDUCE_MASK_REPEAT(MGH_PLAIN_TEMPLATE, WholeReduceSum, Grain::kRepeat, AddOp)
MGH_REDUCE_MASK_REPEAT(MGH_TYPED_TEMPLATE, ReduceDataBlock, Grain::kBlock, ReduceOp<type>)
MGH_REDUCE_MASK_REPEAT(MGH_TYPED_TEMPLATE, ReduceRepeat, Grain::kRepeat, ReduceOp<type>)
MGH_REDUCE_MASK_REPEAT(MGH_TYPED_TEMPLATE, ReducePairElem, Grain::kPair, ReduceOp<type>)

template <typename T, bool isSetMask = true>
void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t repeat, const int64_t mask,
                     const int64_t dstBlkStride, const int64_t srcBlkStride, const int64_t dstRepStride,
                     const int64_t srcRepStride, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, "RepeatReduceSum");
    using namespace moegrad::hostmodel;
    (void)dstBlkStride;  // the device does not use it either
    ReduceRepeats<T, isSetMask>(MakeReduce<T>("RepeatReduceSum", where, Grain::kRepeat, PlaceOf(dst), PlaceOf(src),
                                              dstRepStride, srcBlkStride, srcRepStride),
                                static_cast<uint64_t>(mask), repeat, AddOp{});
}

}  // namespace AscendC
