// The scalar pipe: element access to UB, and to global memory through a private 64-byte line cache.
#pragma once

#include <cstdint>
#include <cstring>

#include "checks.h"

namespace moegrad::hostmodel {

inline bool ScalarInBounds(Core& core, const UbPlace& place, uint32_t bytes, const Site& site)
{
    return TensorAlive(core, site, place, "the tensor") &&
           InBounds(core, site, place, "the element", place.begin, place.begin + bytes);
}

inline void ScalarRead(const UbPlace& place, uint32_t bytes, const Site& site, void* out)
{
    Core& core = Self();
    core.counters.scalar_ub_reads += 1;
    std::memset(out, kPoisonByte, bytes);
    if (!ScalarInBounds(core, place, bytes, site)) {
        return;
    }
    const auto begin = static_cast<uint32_t>(place.begin);
    SpanList reads;
    reads.Add(begin, bytes);
    Issue issue(core, kS, site);
    issue.Check(reads, {});
    issue.Note(reads, {});
    issue.Commit([&] { std::memcpy(out, core.ub.data(begin), bytes); });
    CheckObserved(core, site, reads, "reads");
}

inline void ScalarWrite(const UbPlace& place, uint32_t bytes, const Site& site, const void* in)
{
    Core& core = Self();
    core.counters.scalar_ub_writes += 1;
    if (!ScalarInBounds(core, place, bytes, site)) {
        return;
    }
    const auto begin = static_cast<uint32_t>(place.begin);
    SpanList writes;
    writes.Add(begin, bytes);
    Issue issue(core, kS, site);
    issue.Check({}, writes);
    issue.Note({}, writes);
    issue.Commit([&] { std::memcpy(core.ub.data(begin), in, bytes); });
    core.ub.SetState({begin, bytes}, kInitialised);
}

// ---- global memory ----

inline CacheLine& FetchLine(Core& core, const uint8_t* line)
{
    const auto found = core.dcache.find(line);
    if (found != core.dcache.end()) {
        return found->second;
    }
    CacheLine& fresh = core.dcache[line];
    std::memcpy(fresh.bytes.data(), line, kCacheLineBytes);
    fresh.stamp = core.session.gm.stamp();
    return fresh;
}

inline const uint8_t* LineOf(const uint8_t* address)
{
    return address - reinterpret_cast<uintptr_t>(address) % kCacheLineBytes;
}

// Bytes that changed in memory after the line was fetched, and that this core did not itself put into the line.
inline void CheckStale(Core& core, const Site& site, const GmPlace& place, uint32_t bytes, const CacheLine& line,
                       uint32_t first)
{
    if (!place.array->tracked()) {
        return;
    }
    for (uint32_t i = 0; i < bytes; ++i) {
        const uint32_t id = place.array->writes()[place.offset + i];
        const bool own = (line.dirty >> (first + i) & 1) != 0;
        if (id > line.stamp && !own) {
            core.Report("dcache-stale-read", site,
                        Text("byte ", place.offset + i, " of '", place.array->name(), "' was written by ",
                             Describe(core.session.sites.at(core.session.gm.record(id).site)),
                             " after this core cached its line"));
            return;
        }
    }
}

inline void GmScalarRead(const GmPlace& place, uint32_t bytes, const Site& site, void* out)
{
    Core& core = Self();
    core.counters.scalar_gm_reads += 1;
    std::memset(out, kPoisonByte, bytes);
    if (!GmInRange(core, site, place, bytes, false)) {
        return;
    }
    Issue issue(core, kS, site);
    GmAccess(issue, false).Read(place, bytes);
    issue.Commit([] {});
    const uint8_t* address = place.address();
    const uint8_t* line = LineOf(address);
    const auto first = static_cast<uint32_t>(address - line);
    if (first + bytes > kCacheLineBytes) {
        std::memcpy(out, address, bytes);  // straddles two lines: not modelled as cached
        return;
    }
    const bool cached = core.dcache.count(line) != 0;
    CacheLine& held = FetchLine(core, line);
    if (cached) {
        CheckStale(core, site, place, bytes, held, first);
    }
    std::memcpy(out, held.bytes.data() + first, bytes);
    if (place.array->tracked() && place.array->states()[place.offset] >= kUnwrittenGm) {
        core.Report("gm-uninitialised-read", site,
                    Text("byte ", place.offset, " of '", place.array->name(), "' was never written"));
    }
    GiveWay(core);
}

inline void GmScalarWrite(const GmPlace& place, uint32_t bytes, const Site& site, const void* in)
{
    Core& core = Self();
    core.counters.scalar_gm_writes += 1;
    if (!GmInRange(core, site, place, bytes, true)) {
        return;
    }
    const uint8_t* address = place.address();
    const uint8_t* line = LineOf(address);
    const auto first = static_cast<uint32_t>(address - line);
    core.session.scalar_stores = true;
    Issue issue(core, kS, site);
    GmAccess(issue, false).Write(place, bytes);
    issue.Commit([] {});
    std::memset(place.array->states() + place.offset, kInitialised, bytes);
    CacheLine& held = FetchLine(core, line);
    for (uint32_t i = 0; i < bytes && first + i < kCacheLineBytes; ++i) {
        held.bytes[first + i] = static_cast<const uint8_t*>(in)[i];
        held.dirty |= uint64_t{1} << (first + i);
    }
    held.site = issue.site_id();
    GiveWay(core);
}

// Writes a dirty line back, all of it: neighbours' newer bytes are overwritten, as on the device.
inline void WriteBack(const uint8_t* line, const CacheLine& held)
{
    if (held.dirty != 0) {
        std::memcpy(const_cast<uint8_t*>(line), held.bytes.data(), kCacheLineBytes);
    }
}

inline void CleanLine(Core& core, const uint8_t* line)
{
    const auto found = core.dcache.find(line);
    if (found != core.dcache.end()) {
        WriteBack(line, found->second);
        core.dcache.erase(found);
    }
}

inline void CleanAllLines(Core& core)
{
    for (const auto& [line, held] : core.dcache) {
        WriteBack(line, held);
    }
    core.dcache.clear();
}

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T, CacheLine entireType = CacheLine::SINGLE_CACHE_LINE, DcciDst dcciDst = DcciDst::CACHELINE_ALL>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& tensor, MGH_HERE)
{
    using namespace moegrad::hostmodel;
    Core& core = Self();
    if constexpr (entireType == AscendC::CacheLine::ENTIRE_DATA_CACHE) {
        CleanAllLines(core);
    } else {
        const GmPlace& place = PlaceOf(tensor);
        if (GmInRange(core, {"DataCacheCleanAndInvalid", where}, place, sizeof(T), false)) {
            CleanLine(core, LineOf(place.address()));
        }
    }
}

template <typename T, CacheLine entireType = CacheLine::SINGLE_CACHE_LINE>
void DataCacheCleanAndInvalid(const LocalTensor<T>&, MGH_HERE)
{
    (void)where;
}

}  // namespace AscendC
