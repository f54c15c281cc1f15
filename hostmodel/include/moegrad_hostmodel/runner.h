// Running a kernel: arrays into modelled global memory, one fibre a core, checks at the end, outputs back.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "report.h"
#include "tiling.h"

namespace moegrad::hostmodel {

// One array argument. A virtual array has its size in address space only, except for a window with data.
struct ArraySpec {
    void* data = nullptr;
    uint64_t bytes = 0;
    Role role = Role::kInput;
    bool is_virtual = false;
    bool partial = false;  // an output of which the kernel may leave bytes unwritten
    uint64_t window_offset = 0;
    uint64_t window_bytes = 0;
    std::string name;
};

class Runner {
public:
    Runner(std::string kernel, uint32_t block_count, const Options& options)
        : kernel_(std::move(kernel)), session_(options)
    {
        session_.block_count = block_count;
    }

    Session& session() { return session_; }

    // The address that the kernel gets.
    uint8_t* AddArray(const ArraySpec& spec)
    {
        if (spec.role == Role::kAbsent) {
            return nullptr;
        }
        const std::string name = spec.name.empty() ? Text("argument ", bound_.size()) : spec.name;
        GmArray& array = session_.gm.Add(name, spec.role, spec.bytes, spec.is_virtual);
        bound_.push_back({spec, &array});
        if (CopiesIn(spec)) {
            std::memcpy(array.data() + Begin(spec), spec.data, Length(spec));
        }
        return array.data();
    }

    Report Run(const std::function<void()>& body)
    {
        static std::mutex one_at_a_time;
        const std::lock_guard<std::mutex> lock(one_at_a_time);
        session_.scheduler.Run(
            session_.block_count, kVectorCores, [&](uint32_t index) { RunCore(index, body); },
            [&] {
                session_.deadlocked = true;
                session_.scheduler.WakeAll();
            });
        g_core = nullptr;
        for (Bound& bound : bound_) {
            Finish(bound);
        }
        return MakeReport();
    }

    Report MakeReport()
    {
        Report report;
        report.kernel = kernel_;
        report.block_count = session_.block_count;
        report.options = session_.options;
        report.diagnostics = session_.diagnostics.list();
        report.status = session_.diagnostics.errors() == 0 ? kClean : kFindings;
        report.counters = session_.counters;
        report.time = session_.time;
        return report;
    }

    Site KernelSite() const { return {"kernel end", {kernel_.c_str(), 0}}; }

private:
    struct Bound {
        ArraySpec spec;
        GmArray* array;
    };

    static uint64_t Begin(const ArraySpec& spec) { return spec.is_virtual ? spec.window_offset : 0; }
    static uint64_t Length(const ArraySpec& spec) { return spec.is_virtual ? spec.window_bytes : spec.bytes; }
    static bool CopiesIn(const ArraySpec& spec)
    {
        const bool brings = spec.role == Role::kInput || spec.role == Role::kInOut || spec.role == Role::kTiling ||
                            (spec.role == Role::kWorkspace && spec.data != nullptr);
        return brings && spec.data != nullptr && Length(spec) != 0;
    }

    void RunCore(uint32_t index, const std::function<void()>& body)
    {
        Core core(session_, index);
        g_core = &core;
        try {
            body();
        } catch (const CoreAbort&) {
            core.aborted = true;
        } catch (const std::exception& error) {
            core.aborted = true;
            core.Report("kernel-exception", KernelSite(), error.what());
        }
        g_core = &core;
        if (!core.aborted) {
            CheckLeftovers(core);
        }
        core.pipes.Drain();
        CleanAllLines(core);
        session_.counters += core.counters;
        session_.time.Add(core.counters);
    }

    void CheckLeftovers(Core& core)
    {
        CheckEventsAtEnd(core);
        if (core.tpipe != nullptr) {
            CheckQueuesAtEnd(core, KernelSite());
        }
        if (core.atomic != AtomicOp::kNone) {
            core.Report("atomic-left-on", session_.sites.at(core.atomic_site), "atomic stores are on at kernel end");
        }
        if (core.mask_mode == AscendC::MaskMode::COUNTER) {
            core.Report("mask-left-in-counter-mode", session_.sites.at(core.mask_site), "counter mode at kernel end");
        }
        if (core.tpipes_made == 0 && core.raw_ub && !core.drained_last) {
            core.Report("missing-final-barrier", KernelSite(), "work may be under way when the kernel ends");
        }
        for (const auto& [line, held] : core.dcache) {
            (void)line;
            if (held.dirty != 0) {
                core.Report("dcache-not-flushed", session_.sites.at(held.site), "a written line is still in the cache");
            }
        }
    }

    void Finish(Bound& bound)
    {
        const ArraySpec& spec = bound.spec;
        GmArray& array = *bound.array;
        if (!array.CanaryIntact()) {
            session_.diagnostics.Report("red-zone-damaged", KernelSite(), 0, Text("behind '", array.name(), "'"));
        }
        if (spec.role == Role::kOutput && !spec.is_virtual && !spec.partial) {
            CheckWritten(array);
        }
        if ((spec.role == Role::kOutput || spec.role == Role::kInOut) && spec.data != nullptr && Length(spec) != 0) {
            std::memcpy(spec.data, array.data() + Begin(spec), Length(spec));
        }
    }

    void CheckWritten(const GmArray& array)
    {
        uint64_t missing = 0;
        uint64_t first = 0;
        for (uint64_t i = array.bytes(); i-- > 0;) {
            if (array.writes()[i] == 0) {
                ++missing;
                first = i;
            }
        }
        if (missing != 0) {
            session_.diagnostics.Report("output-unwritten", KernelSite(), 0,
                                        Text(missing, " of ", array.bytes(), " bytes of '", array.name(),
                                             "' were never written, the first at byte ", first));
        }
    }

    std::string kernel_;
    Session session_;
    std::vector<Bound> bound_;
};

}  // namespace moegrad::hostmodel
