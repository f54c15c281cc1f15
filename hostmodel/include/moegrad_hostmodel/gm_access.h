// Accesses to global memory: range, order inside a core, order across cores, ownership of every written byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "issue.h"

namespace moegrad::hostmodel {

// A place in global memory as a GlobalTensor names it: the array it was made from, and a byte offset into it.
struct GmPlace {
    GmArray* array = nullptr;
    int64_t offset = 0;
    int64_t declared_begin = 0;  // byte range given to SetGlobalBuffer; empty when no size was given
    int64_t declared_end = 0;

    GmPlace Shifted(int64_t bytes) const
    {
        GmPlace place = *this;
        place.offset += bytes;
        return place;
    }
    uint8_t* address() const { return array->data() + offset; }
};

inline bool GmInRange(Core& core, const Site& site, const GmPlace& place, uint64_t bytes, bool write)
{
    if (place.array == nullptr) {
        core.Report("gm-out-of-range", site, "the address belongs to no array of this launch");
        return false;
    }
    const GmArray& array = *place.array;
    if (!array.Contains(place.offset, bytes)) {
        core.Report("gm-out-of-range", site,
                    Text(write ? "writes" : "reads", " bytes [", place.offset, ", ",
                         place.offset + static_cast<int64_t>(bytes), ") of '", array.name(), "', which has ",
                         array.bytes(), " bytes"));
        return false;
    }
    if (write && !array.writable()) {
        core.Report("gm-write-to-input", site, Text("writes '", array.name(), "' at byte ", place.offset));
        return false;
    }
    const bool past = place.offset < place.declared_begin ||
                      place.offset + static_cast<int64_t>(bytes) > place.declared_end;
    if (place.declared_end != 0 && past) {
        core.Report("gm-past-declared-size", site,
                    Text("touches bytes [", place.offset, ", ", place.offset + static_cast<int64_t>(bytes), ") of '",
                         array.name(), "'; SetGlobalBuffer gave [", place.declared_begin, ", ", place.declared_end,
                         ")"));
    }
    return true;
}

class GmAccess {
public:
    GmAccess(Issue& issue, bool atomic) : issue_(issue), core_(issue.core()), gm_(core_.session.gm), atomic_(atomic) {}

    // One contiguous piece that was found in range. Pieces of one operation share a record.
    void Read(const GmPlace& place, uint64_t bytes)
    {
        GmArray& array = *place.array;
        if (!array.tracked()) {
            return;
        }
        Runs(array.writes() + place.offset, bytes, [&](const GmRecord& by, uint64_t at) {
            CheckPair(Clash::kReadAfterWrite, by, array, place.offset + static_cast<int64_t>(at));
        });
        Mark(array.reads() + place.offset, bytes);
    }

    void Write(const GmPlace& place, uint64_t bytes)
    {
        GmArray& array = *place.array;
        if (core_.session.scalar_stores) {
            CheckLines(place, bytes);
        }
        Runs(array.writes() + place.offset, bytes, [&](const GmRecord& by, uint64_t at) {
            CheckPair(Clash::kWriteAfterWrite, by, array, place.offset + static_cast<int64_t>(at));
        });
        Runs(array.reads() + place.offset, bytes, [&](const GmRecord& by, uint64_t at) {
            CheckPair(Clash::kWriteAfterRead, by, array, place.offset + static_cast<int64_t>(at));
        });
        Mark(array.writes() + place.offset, bytes);
    }

    uint32_t record()
    {
        if (record_ == 0) {
            record_ = gm_.AddRecord(
                {core_.index, core_.phase(), issue_.number(), issue_.site_id(), issue_.pipe(), atomic_});
        }
        return record_;
    }

private:
    void Mark(uint32_t* log, uint64_t bytes) { std::fill(log, log + bytes, record()); }

    // Visits each run of bytes that share a record.
    template <typename F>
    void Runs(const uint32_t* log, uint64_t bytes, F visit)
    {
        uint32_t last = 0;
        for (uint64_t i = 0; i < bytes; ++i) {
            if (log[i] != last) {
                last = log[i];
                if (last != 0 && last != record_) {
                    visit(gm_.record(last), i);
                }
            }
        }
    }

    // The rest of the first and the last 64-byte line: a scalar store of another core writes such a line back whole.
    void CheckLines(const GmPlace& place, uint64_t bytes)
    {
        const auto line = static_cast<int64_t>(kCacheLineBytes);
        const int64_t begin = place.offset;
        const int64_t end = begin + static_cast<int64_t>(bytes);
        CheckNeighbours(place, begin / line * line, begin);
        const auto size = static_cast<int64_t>(place.array->bytes());
        CheckNeighbours(place, end, std::min((end + line - 1) / line * line, size));
    }

    void CheckNeighbours(const GmPlace& place, int64_t from, int64_t to)
    {
        for (int64_t at = from; at < to; ++at) {
            const uint32_t id = place.array->writes()[at];
            if (id == 0) {
                continue;
            }
            const GmRecord& by = gm_.record(id);
            const bool other = by.core != core_.index && core_.known[by.core] <= by.phase;
            if (other && (by.pipe == kS || issue_.pipe() == kS)) {
                core_.Report("gm-line-shared", issue_.site(),
                             Text("byte ", place.offset, " of '", place.array->name(),
                                  "' shares its 64-byte line with byte ", at, ", which core ", by.core, " writes (",
                                  Describe(core_.session.sites.at(by.site)), ")"));
                return;
            }
        }
    }

    void CheckPair(Clash clash, const GmRecord& by, const GmArray& array, int64_t offset)
    {
        const std::string place = Text("byte ", offset, " of '", array.name(), "'");
        if (by.core == core_.index) {
            if (by.atomic && atomic_) {
                return;
            }
            if (!issue_.Ordered(by.pipe, by.number)) {
                issue_.ReportClash(clash, by.pipe, by.site, place);
            }
            return;
        }
        const bool synchronised = core_.known[by.core] > by.phase;
        if (synchronised || (by.atomic && atomic_)) {
            return;
        }
        const char* name = clash == Clash::kWriteAfterWrite ? "gm-double-write" : "gm-read-before-sync";
        const char* other = clash == Clash::kWriteAfterRead ? " is read by core " : " is written by core ";
        core_.Report(name, issue_.site(),
                     Text(place, other, by.core, " (", Describe(core_.session.sites.at(by.site)),
                          ") with no SyncAll between"));
    }

    Issue& issue_;
    Core& core_;
    GmMemory& gm_;
    bool atomic_;
    uint32_t record_ = 0;
};

}  // namespace moegrad::hostmodel
