// The four pipes of a vector core: queues whose work runs late, and the vector clocks that say what is ordered.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace moegrad::hostmodel {

enum Pipe : uint8_t { kS, kV, kMte2, kMte3 };
inline constexpr int kPipeCount = 4;
inline constexpr const char* kPipeNames[kPipeCount] = {"s", "v", "mte2", "mte3"};

// clock[p] = how far into pipe p everything is known to be complete.
using Clock = std::array<uint32_t, kPipeCount>;

inline void Join(Clock& into, const Clock& from)
{
    for (int p = 0; p < kPipeCount; ++p) {
        into[p] = std::max(into[p], from[p]);
    }
}

// A flag that was set: what a waiter learns, and how far the source pipe must have run.
struct Token {
    Pipe source;
    uint32_t position;
    Clock clock;
};

// Work is queued when the scalar pipe issues it and runs only when an ordering forces it: a wait, a barrier, the end of
// the kernel, or a nudge. So a kernel without an event computes on stale data instead of being lucky.
class PipeSet {
public:
    static constexpr std::size_t kQueueLimit = 192;

    // The next operation of |pipe|: its number. The clock that it starts with is clock(pipe).
    uint32_t Begin(Pipe pipe)
    {
        if (pipe != kS) {
            LearnFromIssue(pipe);
        }
        return ++issued_[pipe];
    }

    // Fixes what operation |number| knows when it starts, once its hazards have been looked at.
    void Seal(Pipe pipe, uint32_t number)
    {
        auto& history = history_[pipe];
        if (history.empty() || history.back().second != clocks_[pipe]) {
            history.emplace_back(number, clocks_[pipe]);
        }
    }

    void Enqueue(Pipe pipe, uint32_t number, std::function<void()> run)
    {
        Push(pipe, {number, std::move(run), {}});
    }

    // A flag set by |source| after everything it was given so far.
    Token Set(Pipe source)
    {
        if (source != kS) {
            LearnFromIssue(source);
        }
        Token token{source, issued_[source], clocks_[source]};
        token.clock[source] = issued_[source];
        return token;
    }

    void Wait(Pipe waiter, const Token& token)
    {
        if (waiter == kS) {
            RunTo(token.source, token.position);
        } else {
            LearnFromIssue(waiter);
            const uint32_t number = ++issued_[waiter];
            Push(waiter, {number, {}, token});
        }
        Join(clocks_[waiter], token.clock);
    }

    // Everything given to |pipe| so far completes before what follows in it.
    void Barrier(Pipe pipe) { clocks_[pipe][pipe] = issued_[pipe]; }

    // The scalar pipe waits for all; nothing is in flight afterwards.
    void BarrierAll()
    {
        Drain();
        Clock all = issued_;
        for (Clock& clock : clocks_) {
            Join(clock, all);
        }
    }

    // |waiter| learns that operation |number| of |source| is complete, with what that one knew.
    void Learn(Pipe waiter, Pipe source, uint32_t number)
    {
        Clock known = ClockAt(source, number);
        known[source] = std::max(known[source], number);
        Join(clocks_[waiter], known);
    }

    // What automatic sync inserts: the scalar pipe waits for |source|, or |waiter| for the scalar pipe or for itself.
    void OrderAfter(Pipe waiter, Pipe source, uint32_t number)
    {
        if (waiter == kS) {
            RunTo(source, number);
        }
        Learn(waiter, source, number);
    }

    void RunTo(Pipe pipe, uint32_t number)
    {
        std::deque<Item>& queue = queues_[pipe];
        while (!queue.empty() && queue.front().number <= number) {
            Item item = std::move(queue.front());
            queue.pop_front();
            if (item.run) {
                item.run();
            } else {
                RunTo(item.wait.source, item.wait.position);
            }
        }
    }

    void Drain()
    {
        for (const Pipe pipe : {kMte3, kV, kMte2}) {
            RunTo(pipe, issued_[pipe]);
        }
    }

    // Lets one pipe run ahead by a few operations, as the seed has it.
    template <typename Random>
    void Nudge(Random& random)
    {
        const auto pipe = static_cast<Pipe>(1 + random() % 3);
        if (!queues_[pipe].empty()) {
            const std::size_t ahead = std::min<std::size_t>(queues_[pipe].size(), 1 + random() % 4);
            RunTo(pipe, queues_[pipe][ahead - 1].number);
        }
    }

    const Clock& clock(Pipe pipe) const { return clocks_[pipe]; }
    uint32_t issued(Pipe pipe) const { return issued_[pipe]; }
    bool Idle() const { return queues_[kV].empty() && queues_[kMte2].empty() && queues_[kMte3].empty(); }
    bool Pending(Pipe pipe, uint32_t number) const
    {
        return !queues_[pipe].empty() && queues_[pipe].front().number <= number;
    }

private:
    struct Item {
        uint32_t number;
        std::function<void()> run;
        Token wait;
    };

    void Push(Pipe pipe, Item item)
    {
        queues_[pipe].push_back(std::move(item));
        if (queues_[pipe].size() > kQueueLimit) {
            RunTo(pipe, queues_[pipe][kQueueLimit / 2].number);
        }
    }

    // An instruction starts after the scalar pipe issued it, hence after whatever the scalar pipe knows to be complete.
    // The scalar pipe's own loads and stores are not among that until a flag has come back: issuing does not wait.
    void LearnFromIssue(Pipe pipe) { Join(clocks_[pipe], clocks_[kS]); }

    Clock ClockAt(Pipe pipe, uint32_t number) const
    {
        const auto& history = history_[pipe];
        auto after = std::upper_bound(history.begin(), history.end(), number,
                                      [](uint32_t n, const auto& entry) { return n < entry.first; });
        return after == history.begin() ? Clock{} : std::prev(after)->second;
    }

    std::array<std::deque<Item>, kPipeCount> queues_;
    std::array<Clock, kPipeCount> clocks_{};
    Clock issued_{};
    std::array<std::vector<std::pair<uint32_t, Clock>>, kPipeCount> history_;
};

}  // namespace moegrad::hostmodel
