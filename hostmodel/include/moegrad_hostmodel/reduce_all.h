// ReduceSum, ReduceMax and ReduceMin of a whole tensor; WholeReduceMax and WholeReduceMin with their index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reduce.h"

namespace moegrad::hostmodel {

// Trees of single repeats.
template <typename T, typename F>
std::vector<std::optional<T>> RepeatTrees(Core& core, const Lanes& lanes, const Operand& source, F combine)
{
    std::vector<std::optional<T>> results;
    std::vector<std::optional<T>> values(lanes.per_repeat);
    for (uint32_t repeat = 0; repeat < lanes.repeats; ++repeat) {
        for (uint32_t lane = 0; lane < lanes.per_repeat; ++lane) {
            values[lane] = lanes.Active(repeat, lane) ? std::optional<T>(LoadElement<T>(core, source.At(repeat, lane)))
                                                      : std::nullopt;
        }
        results.push_back(Tree<T>(values, combine));
    }
    return results;
}

// Up to four repeats are folded lane by lane before the tree (count form on 3510).
template <typename T, typename F>
T FoldedSum(Core& core, const Lanes& lanes, const Operand& source, F combine)
{
    std::vector<std::optional<T>> sums(lanes.per_repeat);
    lanes.ForEach([&](uint32_t repeat, uint32_t lane) {
        const T value = LoadElement<T>(core, source.At(repeat, lane));
        sums[lane] = sums[lane] ? combine(*sums[lane], value) : value;
    });
    return Tree<T>(sums, combine).value_or(T(0));
}

template <typename T, typename F>
T SequentialSum(Core& core, const Lanes& lanes, const Operand& source, F combine)
{
    std::optional<T> total;
    for (const std::optional<T>& part : RepeatTrees<T>(core, lanes, source, combine)) {
        total = total && part ? std::optional<T>(combine(*total, *part)) : part ? part : total;
    }
    return total.value_or(T(0));
}

// The order in which a total comes about differs with the chip and the form; so do its bits.
template <typename T, typename F>
T TotalSum(Core& core, const Lanes& lanes, const Operand& source, bool count_form, F combine)
{
    if (count_form && !kIs3510) {
        return SequentialSum<T>(core, lanes, source, combine);
    }
    if (count_form && lanes.repeats <= 4) {
        return FoldedSum<T>(core, lanes, source, combine);
    }
    return Tree<T>(RepeatTrees<T>(core, lanes, source, combine), combine).value_or(T(0));
}

inline ByteState WorstOf(Core& core, const SpanList& spans)
{
    ByteState worst = kInitialised;
    for (const Span& span : spans) {
        worst = std::max(worst, core.ub.WorstState(span));
    }
    return worst;
}

template <typename T>
bool CheckReduceTmp(Core& core, const Site& site, const UbPlace& tmp, int64_t repeats)
{
    if (!TensorAlive(core, site, tmp, "the work tensor")) {
        return false;
    }
    constexpr int64_t per_block = kBlockBytes / sizeof(T);
    const int64_t needed = (repeats + per_block - 1) / per_block * kBlockBytes;
    const int64_t room = std::min<int64_t>(tmp.limit, tmp.buffer->end - tmp.begin);
    if (room < needed) {
        core.Report("reduce-tmp-too-small", site, Text("the work tensor has ", room, " of ", needed, " bytes"));
    }
    return true;
}

// A reduction of everything into one place. |total(core)| computes it when the vector pipe gets there.
template <typename T, typename F>
void IssueTotal(const Site& site, const Lanes& lanes, Operand source, const UbPlace& dst, uint32_t results, F total)
{
    Core& core = Self();
    VectorCall checks;
    checks.site = site;
    checks.lanes = lanes;
    if (!PrepareOperand(core, checks, source) || !TensorAlive(core, site, dst, "dst")) {
        return;
    }
    Aligned(core, site, dst, "dst", sizeof(T));
    const int64_t to = dst.begin / static_cast<int64_t>(sizeof(T)) * static_cast<int64_t>(sizeof(T));
    const auto bytes = static_cast<int64_t>(results * sizeof(T));
    if (!InBounds(core, site, dst, "dst", to, to + bytes)) {
        return;
    }
    const SpanList reads = SpansOf(source, lanes);
    SpanList writes;
    writes.Add(static_cast<uint32_t>(to), static_cast<uint32_t>(bytes));
    Issue issue(core, kV, site);
    issue.Check(reads, writes);
    issue.Note(reads, writes);
    core.ub.SetState({static_cast<uint32_t>(to), static_cast<uint32_t>(bytes)}, WorstOf(core, reads));
    core.counters.vector_ops += 1;
    core.counters.reduce_repeats += lanes.repeats;
    issue.Commit([&core, lanes, source, to, total] { total(core, lanes, source, to); });
}

// The count form on 2201 ends on the scalar pipe: it waits for V, stores dst[0], and lets V and MTE3 wait for that.
template <typename T>
void ScalarEpilogue(const Site& site, const UbPlace& dst)
{
    Core& core = Self();
    core.pipes.RunTo(kV, core.pipes.issued(kV));
    core.pipes.Learn(kS, kV, core.pipes.issued(kV));
    SpanList writes;
    writes.Add(static_cast<uint32_t>(dst.begin), sizeof(T));
    Issue store(core, kS, site);
    store.Check({}, writes);
    store.Note({}, writes);
    store.Commit([] {});
    core.pipes.Learn(kV, kS, store.number());
    core.pipes.Learn(kMte3, kS, store.number());
}

template <typename T>
void SumInto(const Site& site, const Lanes& lanes, const Operand& source, const UbPlace& dst, bool count_form)
{
    const auto combine = Combiner<T>(AddOp{});
    IssueTotal<T>(site, lanes, source, dst, 1,
                  [combine, count_form](Core& core, const Lanes& l, const Operand& from, int64_t to) {
                      const T sum = TotalSum<T>(core, l, from, count_form, combine);
                      StoreElement<T>(core, to, sum);
                      core.reduce_spr = Widen(sum);
                  });
}

// ---- extrema with their index ----

template <typename T>
using IndexBits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;

template <typename T, typename Op>
std::pair<T, uint32_t> Extreme(Core& core, const Lanes& lanes, const Operand& source, uint32_t from, uint32_t to, Op op)
{
    std::optional<T> best;
    uint32_t index = 0;
    for (uint32_t repeat = from; repeat < to; ++repeat) {
        for (uint32_t lane = 0; lane < lanes.per_repeat; ++lane) {
            if (!lanes.Active(repeat, lane)) {
                continue;
            }
            const T value = LoadElement<T>(core, source.At(repeat, lane));
            const float chosen = best ? op(static_cast<float>(*best), static_cast<float>(value)) : 0;
            if (!best || chosen != static_cast<float>(*best)) {
                best = value;
                index = (repeat - from) * lanes.per_repeat + lane;
            }
        }
    }
    return {best.value_or(T(0)), index};
}

template <typename T>
void StoreExtreme(Core& core, int64_t to, const std::pair<T, uint32_t>& found, AscendC::ReduceOrder order)
{
    using AscendC::ReduceOrder;
    const auto step = static_cast<int64_t>(sizeof(T));
    const bool swapped = order == ReduceOrder::ORDER_INDEX_VALUE;
    const int64_t index_at = order == ReduceOrder::ORDER_VALUE_INDEX ? to + step : to;
    if (order != ReduceOrder::ORDER_ONLY_VALUE) {
        StoreElement<IndexBits<T>>(core, index_at, static_cast<IndexBits<T>>(found.second));
    }
    if (order != ReduceOrder::ORDER_ONLY_INDEX) {
        StoreElement<T>(core, swapped ? to + step : to, found.first);
    }
}

template <typename T, typename Op>
void ExtremeInto(const Site& site, const Lanes& lanes, const Operand& source, const UbPlace& dst, bool with_index,
                 Op op)
{
    using AscendC::ReduceOrder;
    const ReduceOrder order = with_index ? ReduceOrder::ORDER_VALUE_INDEX : ReduceOrder::ORDER_ONLY_VALUE;
    IssueTotal<T>(site, lanes, source, dst, with_index ? 2 : 1,
                  [op, order](Core& core, const Lanes& l, const Operand& from, int64_t to) {
                      StoreExtreme<T>(core, to, Extreme<T>(core, l, from, 0, l.repeats, op), order);
                  });
}

template <typename T, bool set_mask, typename Op>
void WholeExtreme(const char* api, const Where& where, const UbPlace& dst, const UbPlace& src, const MaskArgument& mask,
                  int64_t repeats, int64_t dst_rep, int64_t src_blk, int64_t src_rep, AscendC::ReduceOrder order, Op op)
{
    using AscendC::ReduceOrder;
    Core& core = Self();
    const Site site{api, where};
    Lanes lanes;
    if (!RepeatLanes(core, site, lanes, sizeof(T), set_mask, mask, repeats)) {
        return;
    }
    const bool pair = order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE;
    const int64_t width = static_cast<int64_t>(sizeof(T)) * (pair ? 2 : 1);
    const int64_t step = dst_rep * width;
    const Operand source = RepeatOperand(src, "src", sizeof(T), src_blk, src_rep);
    // Results are written one stride apart; the run between them is treated as written.
    const auto results = static_cast<uint32_t>(((lanes.repeats - 1) * step + width) / static_cast<int64_t>(sizeof(T)));
    IssueTotal<T>(site, lanes, source, dst, results,
                  [op, order, step](Core& c, const Lanes& l, const Operand& from, int64_t to) {
                      for (uint32_t r = 0; r < l.repeats; ++r) {
                          StoreExtreme<T>(c, to + r * step, Extreme<T>(c, l, from, r, r + 1, op), order);
                      }
                  });
}

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const int64_t count, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, "ReduceSum");
    using namespace moegrad::hostmodel;
    const Site site{"ReduceSum", where};
    LeaveCountCall(Self());
    if (!CountOk(Self(), site, count)) {
        return;
    }
    const Lanes lanes = CountLanes(count, sizeof(T));
    if (kIs3510) {
        CheckReduceTmp<T>(Self(), site, PlaceOf(sharedTmpBuffer), std::max<int64_t>(1, count / lanes.per_repeat));
    }
    SumInto<T>(site, lanes, CountOperand(PlaceOf(src), "src", sizeof(T), sizeof(T)), PlaceOf(dst), true);
    if (!kIs3510) {
        ScalarEpilogue<T>(site, PlaceOf(dst));
    }
    Self().reduce_spr_number = Self().pipes.issued(kV);
}

template <typename T, bool isSetMask = true>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const int64_t mask, const int64_t repeatTime, const int64_t srcRepStride, MGH_HERE)
{
    MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, "ReduceSum");
    using namespace moegrad::hostmodel;
    const Site site{"ReduceSum", where};
    Lanes lanes;
    lanes.per_repeat = kRepeatBytes / sizeof(T);
    // The repeat count is any 32-bit number here: the call is split inside.
    const MaskArgument lanes_mask(static_cast<uint64_t>(mask));
    if (!MaskOk(Self(), site, lanes_mask, lanes.per_repeat) || !CountOk(Self(), site, repeatTime)) {
        return;
    }
    lanes.mask = Mask::FirstLanes(static_cast<uint64_t>(mask));
    lanes.repeats = static_cast<uint32_t>(repeatTime);
    CheckReduceTmp<T>(Self(), site, PlaceOf(sharedTmpBuffer), repeatTime);
    SumInto<T>(site, lanes, RepeatOperand(PlaceOf(src), "src", sizeof(T), 1, srcRepStride), PlaceOf(dst), false);
}

// The last count-form total, read on the scalar pipe.
template <typename T>
T GetReduceRepeatSumSpr(MGH_HERE)
{
    using namespace moegrad::hostmodel;
    Core& core = Self();
    Issue issue(core, kS, {"GetReduceRepeatSumSpr", where});
    if (!issue.Ordered(kV, core.reduce_spr_number)) {
        core.Report("missing-event-v-s", {"GetReduceRepeatSumSpr", where}, "the sum may still be under way");
    }
    issue.Commit([] {});
    return static_cast<T>(core.reduce_spr);
}
template <typename T>
T GetAccVal(MGH_HERE)
{
    return GetReduceRepeatSumSpr<T>(where);
}

#define MGH_EXTREME(Name, Whole, Functor)                                                                             \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,            \
              const int64_t count, bool calIndex = false, MGH_HERE)                                                   \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, #Name);                                                  \
        using namespace moegrad::hostmodel;                                                                           \
        const Site site{#Name, where};                                                                                \
        LeaveCountCall(Self());                                                                                       \
        if (CountOk(Self(), site, count)) {                                                                           \
            const Lanes lanes = CountLanes(count, sizeof(T));                                                         \
            CheckReduceTmp<T>(Self(), site, PlaceOf(sharedTmpBuffer), lanes.repeats);                                 \
            ExtremeInto<T>(site, lanes, CountOperand(PlaceOf(src), "src", sizeof(T), sizeof(T)), PlaceOf(dst),        \
                           calIndex, Functor{});                                                                      \
        }                                                                                                             \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Whole(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t mask, const int64_t repeat,        \
               const int64_t dstRepStride, const int64_t srcBlkStride, const int64_t srcRepStride,                    \
               ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, MGH_HERE)                                          \
    {                                                                                                                 \
        MGH_REQUIRE_DTYPE(moegrad::hostmodel::kReducible<T>, #Whole);                                                 \
        using namespace moegrad::hostmodel;                                                                           \
        WholeExtreme<T, isSetMask>(#Whole, where, PlaceOf(dst), PlaceOf(src), static_cast<uint64_t>(mask), repeat,    \
                                   dstRepStride, srcBlkStride, srcRepStride, order, Functor{});                       \
    }

MGH_EXTREME(ReduceMax, WholeReduceMax, MaxOp)
MGH_EXTREME(ReduceMin, WholeReduceMin, MinOp)

}  // namespace AscendC
