// Giving an operation to a pipe: look for missing order, note who touches what, queue the work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core.h"

namespace moegrad::hostmodel {

enum class Clash : uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite };

inline const char* Describe(Clash clash)
{
    switch (clash) {
        case Clash::kReadAfterWrite: return "reads what is still being written";
        case Clash::kWriteAfterRead: return "overwrites what is still being read";
        case Clash::kWriteAfterWrite: return "overwrites what is still being written";
    }
    return "";
}

class Issue {
public:
    Issue(Core& core, Pipe pipe, const Site& site)
        : core_(core), pipe_(pipe), site_(site), site_id_(core.session.sites.Intern(site)),
          number_(core.pipes.Begin(pipe))
    {
        core.Step(site);
        core.drained_last = false;
    }

    // All hazards are looked at before anything is noted: an operation does not clash with itself.
    void Check(const SpanList& reads, const SpanList& writes)
    {
        for (const Span& span : reads) {
            ForBlocks(span, [&](BlockLog& log, uint32_t mask, uint32_t address) { CheckRead(log, mask, address); });
        }
        for (const Span& span : writes) {
            ForBlocks(span, [&](BlockLog& log, uint32_t mask, uint32_t address) { CheckWrite(log, mask, address); });
        }
    }

    void Note(const SpanList& reads, const SpanList& writes)
    {
        for (const Span& span : reads) {
            ForBlocks(span, [&](BlockLog& log, uint32_t mask, uint32_t) {
                log.read(pipe_).Note(mask, number_, site_id_);
            });
        }
        for (const Span& span : writes) {
            ForBlocks(span, [&](BlockLog& log, uint32_t mask, uint32_t) {
                log.Forget(mask);
                log.written(pipe_).Note(mask, number_, site_id_);
            });
        }
    }

    // Queues the work. After a clash it runs at once, before what it should have waited for.
    void Commit(std::function<void()> run)
    {
        core_.pipes.Seal(pipe_, number_);
        if (pipe_ == kS || clash_in_pipe_) {
            run();
            return;
        }
        core_.pipes.Enqueue(pipe_, number_, std::move(run));
        if (clash_across_) {
            core_.pipes.RunTo(pipe_, number_);
        }
        if (core_.session.scheduler.seeded() && core_.session.scheduler.random()() % 4 == 0) {
            core_.pipes.Nudge(core_.session.scheduler.random());
        }
    }

    // True when |number| of |other| is complete before this operation, or automatic sync makes it so.
    bool Ordered(Pipe other, uint32_t number)
    {
        if (number == 0 || (other == pipe_ && (pipe_ == kS || number == number_))) {
            return true;
        }
        if (core_.pipes.clock(pipe_)[other] >= number) {
            return true;
        }
        if (!Automatic(other)) {
            return false;
        }
        core_.pipes.OrderAfter(pipe_, other, number);
        core_.counters.auto_syncs += 1;
        return true;
    }

    void ReportClash(Clash clash, Pipe other, uint32_t other_site, const std::string& place)
    {
        const std::string name = other == pipe_ ? Text("missing-barrier-", kPipeNames[pipe_])
                                                : Text("missing-event-", kPipeNames[other], "-", kPipeNames[pipe_]);
        core_.Report(name.c_str(), site_,
                     Text(Describe(clash), " by ", Describe(core_.session.sites.at(other_site)), ", at ", place));
        (other == pipe_ ? clash_in_pipe_ : clash_across_) = true;
        clashed_ = true;
    }

    Core& core() { return core_; }
    Pipe pipe() const { return pipe_; }
    const Site& site() const { return site_; }
    uint32_t site_id() const { return site_id_; }
    uint32_t number() const { return number_; }
    bool clashed() const { return clashed_; }

private:
    // Exactly the documented coverage: scalar accesses against every pipe, and V against V (in hardware on 3510).
    bool Automatic(Pipe other) const
    {
        const bool vector_pair = pipe_ == kV && other == kV;
        if (vector_pair && kIs3510) {
            return true;
        }
        return core_.session.options.auto_sync && (vector_pair || pipe_ == kS || other == kS);
    }

    template <typename F>
    void ForBlocks(const Span& span, F visit)
    {
        for (uint32_t block = span.begin / kBlockBytes; block * kBlockBytes < span.end(); ++block) {
            const uint32_t start = block * kBlockBytes;
            const uint32_t from = span.begin > start ? span.begin - start : 0;
            const uint32_t to = span.end() - start < kBlockBytes ? span.end() - start : kBlockBytes;
            const uint32_t mask = static_cast<uint32_t>(((uint64_t{1} << to) - 1) & ~((uint64_t{1} << from) - 1));
            visit(core_.ub.log(block), mask, start + from);
        }
    }

    void CheckRead(const BlockLog& log, uint32_t mask, uint32_t address)
    {
        for (const Pipe writer : kWriters) {
            CheckTouch(Clash::kReadAfterWrite, writer, log.written(writer), mask, address);
        }
    }

    void CheckWrite(const BlockLog& log, uint32_t mask, uint32_t address)
    {
        for (const Pipe writer : kWriters) {
            CheckTouch(Clash::kWriteAfterWrite, writer, log.written(writer), mask, address);
        }
        for (const Pipe reader : kReaders) {
            CheckTouch(Clash::kWriteAfterRead, reader, log.read(reader), mask, address);
        }
    }

    void CheckTouch(Clash clash, Pipe other, const Touch& touch, uint32_t mask, uint32_t address)
    {
        if ((touch.mask & mask) != 0 && !Ordered(other, touch.number)) {
            ReportClash(clash, other, touch.site, Text("UB offset ", address));
        }
    }

    Core& core_;
    Pipe pipe_;
    Site site_;
    uint32_t site_id_;
    uint32_t number_;
    bool clash_in_pipe_ = false;
    bool clash_across_ = false;
    bool clashed_ = false;
};

}  // namespace moegrad::hostmodel
