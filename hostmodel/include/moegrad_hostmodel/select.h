// Compare, CompareScalar, Select, Gather: bit masks in tensors, and byte offsets.
#pragma once

#include <cstdint>

#include "fill.h"

namespace moegrad::hostmodel {

template <typename T>
bool Holds(T a, T b, AscendC::CMPMODE mode)
{
    using AscendC::CMPMODE;
    const double x = Widen(a);
    const double y = Widen(b);
    switch (mode) {
        case CMPMODE::LT: return x < y;
        case CMPMODE::GT: return x > y;
        case CMPMODE::EQ: return x == y;
        case CMPMODE::LE: return x <= y;
        case CMPMODE::GE: return x >= y;
        case CMPMODE::NE: return x != y;
    }
    return false;
}

inline bool ReadBit(Core& core, int64_t begin, int64_t bit)
{
    return (*core.ub.data(static_cast<uint32_t>(begin + bit / 8)) >> (bit % 8) & 1) != 0;
}

// A count-level operation over values (width |w| each) with one more operand of one bit per element.
struct BitCall {
    Site site;
    Operand bits;
    int64_t count = 0;
    bool writes_bits = false;

    Span BitSpan() const { return {static_cast<uint32_t>(bits.begin), static_cast<uint32_t>((count + 7) / 8)}; }
};

template <typename F>
void IssueBits(const BitCall& call, const Operand* destination, std::vector<Operand> sources, const Lanes& lanes, F run)
{
    Core& core = Self();
    VectorCall checks;
    checks.site = call.site;
    checks.lanes = lanes;
    SpanList reads;
    SpanList writes;
    ByteState worst = kInitialised;
    for (Operand& source : sources) {
        if (!PrepareOperand(core, checks, source)) {
            return;
        }
        for (const Span& span : SpansOf(source, lanes)) {
            reads.Add(span.begin, span.bytes);
            worst = std::max(worst, core.ub.WorstState(span));
        }
    }
    if (!TensorAlive(core, call.site, call.bits.place, call.bits.name)) {
        return;
    }
    Aligned(core, call.site, call.bits.place, call.bits.name, kBlockBytes);
    const Span bits = call.BitSpan();
    if (!InBounds(core, call.site, call.bits.place, call.bits.name, call.bits.begin, call.bits.begin + bits.bytes)) {
        return;
    }
    if (call.writes_bits) {
        writes.Add(bits.begin, bits.bytes);
    } else {
        reads.Add(bits.begin, bits.bytes);
        worst = std::max(worst, core.ub.WorstState(bits));
    }
    if (destination != nullptr) {
        Operand checked = *destination;
        if (!PrepareOperand(core, checks, checked)) {
            return;
        }
        for (const Span& span : SpansOf(checked, lanes)) {
            writes.Add(span.begin, span.bytes);
        }
    }
    Issue issue(core, kV, call.site);
    issue.Check(reads, writes);
    issue.Note(reads, writes);
    for (const Span& span : writes) {
        core.ub.SetState(span, worst);
    }
    core.counters.vector_ops += 1;
    core.counters.vector_repeats += lanes.repeats;
    issue.Commit([&core, run] { run(core); });
}

template <typename T, typename F>
void CompareInto(const Where& where, const char* api, const UbPlace& dst, const UbPlace& src0, const UbPlace* src1,
                 int64_t count, F holds)
{
    const Site site{api, where};
    LeaveCountCall(Self());
    if (!CountOk(Self(), site, count)) {
        return;
    }
    if (count * static_cast<int64_t>(sizeof(T)) % kRepeatBytes != 0) {
        Self().Report("count-out-of-range", site, Text("Compare takes whole repeats of 256 bytes; count is ", count));
    }
    BitCall call{site, CountOperand(dst, "dst", 1, 1), count, true};
    std::vector<Operand> sources{CountOperand(src0, "src0", sizeof(T), sizeof(T))};
    if (src1 != nullptr) {
        sources.push_back(CountOperand(*src1, "src1", sizeof(T), sizeof(T)));
    }
    const int64_t to = dst.begin;
    const int64_t a = src0.begin;
    const int64_t b = src1 == nullptr ? 0 : src1->begin;
    IssueBits(call, nullptr, sources, CountLanes(count, sizeof(T)), [=](Core& core) {
        for (int64_t i = 0; i < count; ++i) {
            uint8_t& byte = *core.ub.data(static_cast<uint32_t>(to + i / 8));
            const auto bit = static_cast<uint8_t>(1u << (i % 8));
            const int64_t step = i * static_cast<int64_t>(sizeof(T));
            const bool set = holds(core, a + step, b + step);
            byte = static_cast<uint8_t>(set ? byte | bit : byte & ~bit);
        }
    });
}

template <typename T, typename F>
void SelectInto(const Where& where, const UbPlace& dst, const UbPlace& mask, const std::vector<Operand>& sources,
                int64_t count, F other)
{
    const Site site{"Select", where};
    LeaveCountCall(Self());
    if (!CountOk(Self(), site, count)) {
        return;
    }
    BitCall call{site, CountOperand(mask, "selMask", 1, 1), count, false};
    const Operand destination = CountOperand(dst, "dst", sizeof(T), sizeof(T));
    const int64_t bits = mask.begin;
    const int64_t from = sources[0].begin;
    const int64_t to = dst.begin;
    IssueBits(call, &destination, sources, CountLanes(count, sizeof(T)), [=](Core& core) {
        for (int64_t i = 0; i < count; ++i) {
            const int64_t step = i * static_cast<int64_t>(sizeof(T));
            const T value = ReadBit(core, bits, i) ? LoadElement<T>(core, from + step) : other(core, step);
            StoreElement<T>(core, to + step, value);
        }
    });
}

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T, typename U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    CompareInto<T>(where, "Compare", PlaceOf(dst), PlaceOf(src0), &PlaceOf(src1), count,
                   [cmpMode](Core& core, int64_t a, int64_t b) {
                       return Holds(LoadElement<T>(core, a), LoadElement<T>(core, b), cmpMode);
                   });
}

template <typename T, typename U>
void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1, CMPMODE cmpMode,
                   const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    CompareInto<T>(where, "CompareScalar", PlaceOf(dst), PlaceOf(src0), nullptr, count,
                   [cmpMode, src1](Core& core, int64_t a, int64_t) {
                       return Holds(LoadElement<T>(core, a), src1, cmpMode);
                   });
}

template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE, const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    const int64_t other = PlaceOf(src1).begin;
    SelectInto<T>(where, PlaceOf(dst), PlaceOf(selMask),
                  {CountOperand(PlaceOf(src0), "src0", sizeof(T), sizeof(T)),
                   CountOperand(PlaceOf(src1), "src1", sizeof(T), sizeof(T))},
                  count, [other](Core& core, int64_t step) { return LoadElement<T>(core, other + step); });
}

template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, const T src1, SELMODE,
            const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    SelectInto<T>(where, PlaceOf(dst), PlaceOf(selMask), {CountOperand(PlaceOf(src0), "src0", sizeof(T), sizeof(T))},
                  count, [src1](Core&, int64_t) { return src1; });
}

// dst[i] = src at byte srcOffset[i] + srcBaseAddr.
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            const uint32_t srcBaseAddr, const int64_t count, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    VectorCall call = CountCall<T>("Gather", where, count);
    if (call.lanes.repeats == 0 || !TensorAlive(Self(), call.site, PlaceOf(src), "src")) {
        return;
    }
    const int64_t base = PlaceOf(src).begin + srcBaseAddr;
    const int64_t limit = PlaceOf(src).begin + PlaceOf(src).limit;
    Operand whole = CountOperand(PlaceOf(src), "src", sizeof(T), sizeof(T));
    whole.repeat_step = 0;
    whole.block_step = 0;
    IssueElementwise<2>(call, CountOperand(PlaceOf(dst), "dst", sizeof(T), sizeof(T)),
                        {CountOperand(PlaceOf(srcOffset), "srcOffset", 4, sizeof(T)), whole},
                        [=, site = call.site](Core& core, int64_t to, const std::array<int64_t, 2>& from) {
                            const int64_t at = base + LoadElement<uint32_t>(core, from[0]);
                            if (at + static_cast<int64_t>(sizeof(T)) > limit) {
                                core.Report("gather-out-of-bounds", site, Text("byte ", at, " of UB, limit ", limit));
                                return;
                            }
                            StoreElement<T>(core, to, LoadElement<T>(core, at));
                        });
}

}  // namespace AscendC
