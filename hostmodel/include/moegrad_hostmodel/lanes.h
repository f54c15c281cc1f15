// How a vector instruction walks its operands: repeats of 256 bytes, data blocks of 32, masks, strides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "checks.h"
#include "params.h"

namespace moegrad::hostmodel {

// The shape of a call: how many lanes a repeat has, how many repeats, which lanes take part.
struct Lanes {
    uint32_t per_repeat = 0;
    uint32_t repeats = 0;
    Mask mask;
    int64_t total = -1;  // counter mode: the first |total| lanes over all repeats, and the mask does not count

    bool Active(uint32_t repeat, uint32_t lane) const
    {
        return total >= 0 ? int64_t{repeat} * per_repeat + lane < total : mask.Has(lane);
    }

    template <typename F>
    void ForEach(F visit) const
    {
        for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
            for (uint32_t lane = 0; lane < per_repeat; ++lane) {
                if (Active(repeat, lane)) {
                    visit(repeat, lane);
                }
            }
        }
    }
};

// One operand: where lane l of repeat r lies.
struct Operand {
    UbPlace place;
    const char* name = "";
    int64_t begin = 0;
    int64_t block_step = kBlockBytes;
    int64_t repeat_step = kRepeatBytes;
    uint32_t width = 4;
    bool broadcast = false;  // one element for all lanes of a data block

    int64_t At(uint32_t repeat, uint32_t lane) const
    {
        if (broadcast) {
            return begin + repeat * repeat_step + int64_t{lane} * width / kBlockBytes * width;
        }
        const int64_t byte = int64_t{lane} * width;
        return begin + repeat * repeat_step + byte / kBlockBytes * block_step + byte % kBlockBytes;
    }
    bool Contiguous(const Lanes& lanes) const
    {
        return !broadcast && block_step == kBlockBytes && repeat_step == int64_t{lanes.per_repeat} * width;
    }
    bool Coincides(const Operand& other) const
    {
        return begin == other.begin && block_step == other.block_step && repeat_step == other.repeat_step &&
               width == other.width;
    }
};

// Data blocks that active lanes touch, as byte ranges in lane order.
inline SpanList SpansOf(const Operand& operand, const Lanes& lanes)
{
    SpanList spans;
    if (lanes.total >= 0 && operand.Contiguous(lanes)) {
        spans.Add(static_cast<uint32_t>(operand.begin), static_cast<uint32_t>(lanes.total * operand.width));
        return spans;
    }
    lanes.ForEach([&](uint32_t repeat, uint32_t lane) {
        spans.Add(static_cast<uint32_t>(operand.At(repeat, lane)), operand.width);
    });
    return spans;
}

// The extent in 64 bits, before anything is narrowed: wild strides must not wrap into the buffer.
inline bool ExtentInBounds(Core& core, const Site& site, const Operand& operand, const Lanes& lanes)
{
    int64_t low = INT64_MAX;
    int64_t high = 0;
    const auto take = [&](uint32_t repeat, uint32_t lane) {
        low = std::min(low, operand.At(repeat, lane));
        high = std::max(high, operand.At(repeat, lane) + operand.width);
    };
    if (lanes.total > 0 && operand.Contiguous(lanes)) {
        low = operand.begin;
        high = operand.begin + lanes.total * operand.width;
    } else {
        lanes.ForEach(take);
    }
    return high == 0 || InBounds(core, site, operand.place, operand.name, low, high);
}

inline Lanes CountLanes(int64_t count, uint32_t width)
{
    Lanes lanes;
    lanes.per_repeat = kRepeatBytes / width;
    lanes.total = count;
    lanes.repeats = static_cast<uint32_t>((count + lanes.per_repeat - 1) / lanes.per_repeat);
    return lanes;
}

inline Operand CountOperand(const UbPlace& place, const char* name, uint32_t width, uint32_t widest)
{
    Operand operand;
    operand.place = place;
    operand.name = name;
    operand.begin = place.begin;
    operand.width = width;
    operand.repeat_step = int64_t{kRepeatBytes} / widest * width;
    return operand;
}

inline Operand RepeatOperand(const UbPlace& place, const char* name, uint32_t width, int64_t block_stride,
                             int64_t repeat_stride)
{
    Operand operand;
    operand.place = place;
    operand.name = name;
    operand.begin = place.begin;
    operand.width = width;
    operand.block_step = block_stride * kBlockBytes;
    operand.repeat_step = repeat_stride * kBlockBytes;
    return operand;
}

// ---- masks ----

// The mask argument of a call: a lane count, or the bit form.
struct MaskArgument {
    MaskArgument(uint64_t lanes) : count(static_cast<int64_t>(lanes)) {}
    MaskArgument(const uint64_t* bits) : word{bits[0], bits[1]} {}
    int64_t count = -1;
    std::array<uint64_t, 2> word{};
};

inline bool RepeatOk(Core& core, const Site& site, int64_t repeats)
{
    if (repeats < 0 || repeats > 255) {
        core.Report("repeat-out-of-range", site, Text("repeatTime is ", repeats, "; the device uses ", repeats & 255));
        return false;
    }
    if (repeats == 0 && kIs3510) {
        core.Report("zero-count-3510", site, "repeatTime is 0");
    }
    return repeats != 0;
}

inline bool MaskOk(Core& core, const Site& site, const MaskArgument& mask, uint32_t per_repeat)
{
    if (mask.count >= 0) {
        if (mask.count > per_repeat) {
            core.Report("mask-out-of-range", site, Text("mask is ", mask.count, ", at most ", per_repeat, " here"));
        }
        if (mask.count == 0 && kIs3510) {
            core.Report("zero-count-3510", site, "mask is 0");
        }
        return mask.count != 0;
    }
    if (per_repeat <= 64 && mask.word[1] != 0) {
        core.Report("mask-out-of-range", site, "mask[1] must be 0 for 32-bit types");
    }
    return mask.word[0] != 0 || mask.word[1] != 0;
}

// The lanes of a repeat-level call. With |set_mask| the argument goes into the mask register first, as on the device.
inline bool RepeatLanes(Core& core, const Site& site, Lanes& lanes, uint32_t widest, bool set_mask,
                        const MaskArgument& mask, int64_t repeats)
{
    lanes.per_repeat = kRepeatBytes / widest;
    const bool counter = core.mask_mode == AscendC::MaskMode::COUNTER;
    if (!counter && !RepeatOk(core, site, repeats)) {
        return false;
    }
    if (set_mask && counter && mask.count >= 0) {
        core.mask_count = static_cast<uint64_t>(mask.count);
    } else if (set_mask) {
        if (!MaskOk(core, site, mask, lanes.per_repeat)) {
            return false;
        }
        core.mask = mask.count >= 0 ? Mask::FirstLanes(static_cast<uint64_t>(mask.count)) : Mask{mask.word};
    }
    lanes.repeats = static_cast<uint32_t>(repeats);
    lanes.mask = core.mask;
    if (counter) {
        lanes.total = static_cast<int64_t>(core.mask_count);
        lanes.repeats = static_cast<uint32_t>((lanes.total + lanes.per_repeat - 1) / lanes.per_repeat);
    }
    return lanes.repeats != 0;
}

// A count-level call runs in counter mode inside and leaves the mask register as the constructor of TPipe does.
inline void LeaveCountCall(Core& core)
{
    core.mask = {};
    core.mask_mode = AscendC::MaskMode::NORMAL;
}

// ---- overlap ----

inline bool RangesMeet(const SpanList& a, const SpanList& b)
{
    return !a.empty() && !b.empty() && a.lowest() < b.highest() && b.lowest() < a.highest();
}

// Inside a repeat, source and destination coincide or are disjoint; across repeats no destination feeds a later source.
inline bool OverlapAllowed(const Operand& destination, const Operand& source, const Lanes& lanes, bool accumulates)
{
    if (destination.Coincides(source) && (destination.repeat_step != 0 || accumulates || lanes.repeats == 1)) {
        return true;
    }
    for (uint32_t write = 0; write < lanes.repeats; ++write) {
        for (uint32_t read = write; read < lanes.repeats; ++read) {
            const bool same_start = destination.At(write, 0) == source.At(read, 0);
            if (write == read && same_start && destination.width == source.width &&
                destination.block_step == source.block_step) {
                continue;
            }
            if (accumulates && same_start) {
                continue;
            }
            for (uint32_t lane = 0; lane < lanes.per_repeat; lane += kBlockBytes / destination.width) {
                const int64_t at = destination.At(write, lane) / kBlockBytes;
                for (uint32_t other = 0; other < lanes.per_repeat; other += kBlockBytes / source.width) {
                    if (lanes.Active(write, lane) && lanes.Active(read, other) &&
                        source.At(read, other) / kBlockBytes == at) {
                        return false;
                    }
                }
            }
        }
    }
    return true;
}

}  // namespace moegrad::hostmodel
