// Cores as fibres: each runs until it gives way, so that several cores interleave as the seed has it.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace moegrad::hostmodel {

// Thrown inside a core that cannot go on, where the device would hang.
struct CoreAbort {};

class Scheduler {
public:
    explicit Scheduler(uint64_t seed) : seeded_(seed != 0), random_(seed) {}

    // Runs body(0..count-1), at most |window| at a time. |stuck| is called when all that are left are parked.
    void Run(uint32_t count, uint32_t window, std::function<void(uint32_t)> body, const std::function<void()>& stuck)
    {
        body_ = std::move(body);
        uint32_t next = 0;
        uint32_t finished = 0;
        while (finished < count) {
            while (next < count && live_.size() < window) {
                Start(next++);
            }
            Fibre* fibre = Pick();
            if (fibre == nullptr) {
                stuck();
                continue;
            }
            current_ = fibre;
            swapcontext(&main_, &fibre->context);
            current_ = nullptr;
            if (fibre->finished) {
                ++finished;
                Retire(fibre);
            }
        }
    }

    // Lets another core run, now and then.
    void MaybeYield()
    {
        if (seeded_ && live_.size() > 1 && random_() % 16 == 0) {
            swapcontext(&current_->context, &main_);
        }
    }

    // Stops the running core until Wake names it.
    void Park()
    {
        current_->parked = true;
        swapcontext(&current_->context, &main_);
    }

    void WakeAll()
    {
        for (auto& fibre : live_) {
            fibre->parked = false;
        }
    }

    bool seeded() const { return seeded_; }
    std::minstd_rand& random() { return random_; }

private:
    static constexpr std::size_t kStackBytes = std::size_t{1} << 20;

    struct Fibre {
        ucontext_t context;
        std::unique_ptr<char[]> stack;
        uint32_t index;
        bool parked = false;
        bool finished = false;
    };

    void Start(uint32_t index)
    {
        auto fibre = std::make_unique<Fibre>();
        if (!stacks_.empty()) {
            fibre->stack = std::move(stacks_.back());
            stacks_.pop_back();
        } else {
            fibre->stack.reset(new char[kStackBytes]);
        }
        fibre->index = index;
        getcontext(&fibre->context);
        fibre->context.uc_stack.ss_sp = fibre->stack.get();
        fibre->context.uc_stack.ss_size = kStackBytes;
        fibre->context.uc_link = &main_;
        // makecontext passes ints only: the scheduler travels in two halves.
        const auto self = reinterpret_cast<uintptr_t>(this);
        makecontext(&fibre->context, reinterpret_cast<void (*)()>(&Scheduler::Enter), 2,
                    static_cast<uint32_t>(self >> 32), static_cast<uint32_t>(self));
        live_.push_back(std::move(fibre));
    }

    static void Enter(uint32_t high, uint32_t low)
    {
        auto* self = reinterpret_cast<Scheduler*>((static_cast<uintptr_t>(high) << 32) | low);
        Fibre* fibre = self->current_;
        self->body_(fibre->index);
        fibre->finished = true;
    }

    Fibre* Pick()
    {
        const auto ready = [](const auto& fibre) { return !fibre->parked; };
        const auto count = static_cast<uint32_t>(std::count_if(live_.begin(), live_.end(), ready));
        uint32_t skip = seeded_ && count > 0 ? random_() % count : 0;
        for (auto& fibre : live_) {
            if (ready(fibre) && skip-- == 0) {
                return fibre.get();
            }
        }
        return nullptr;
    }

    void Retire(Fibre* fibre)
    {
        const auto at = std::find_if(live_.begin(), live_.end(), [&](const auto& f) { return f.get() == fibre; });
        stacks_.push_back(std::move((*at)->stack));
        live_.erase(at);
    }

    bool seeded_;
    std::minstd_rand random_;
    std::function<void(uint32_t)> body_;
    std::vector<std::unique_ptr<Fibre>> live_;
    std::vector<std::unique_ptr<char[]>> stacks_;
    ucontext_t main_{};
    Fibre* current_ = nullptr;
};

}  // namespace moegrad::hostmodel
