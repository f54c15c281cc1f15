// Tensors and arrays, which clients know by their address.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "handles.h"
#include "text.h"

namespace moegrad::hostacl {

template <typename T>
class Pool {
public:
    explicit Pool(const char* name) : name_(name) {}

    T* Add(std::unique_ptr<T> object)
    {
        T* const address = object.get();
        live_.emplace(address, Entry{NextNumber(), std::move(object)});
        return address;
    }

    bool Holds(const T* address) const { return live_.count(address) != 0; }

    // In the order of creation; 0 for what is not alive.
    uint64_t NumberOf(const T* address) const
    {
        const auto found = live_.find(address);
        return found == live_.end() ? 0 : found->second.number;
    }

    void Remove(const T* address)
    {
        const auto found = live_.find(address);
        removed_.push_back(std::move(found->second.object));
        live_.erase(found);
        if (removed_.size() > kKept) {
            removed_.pop_front();
        }
    }

    // What an address that is not alive is instead.
    std::string Describe(const T* address) const
    {
        for (const std::unique_ptr<T>& gone : removed_) {
            if (gone.get() == address) {
                return Text("is a destroyed ", name_);
            }
        }
        return Text("is no ", name_, " of this process: ", static_cast<const void*>(address));
    }

    template <typename Visit>
    void ForEach(Visit visit) const
    {
        for (const auto& [address, entry] : live_) {
            visit(entry.number, *address);
        }
    }

private:
    // Removed objects keep their addresses from being used again for a while, so that a stale one is recognised.
    static constexpr size_t kKept = 1024;

    struct Entry {
        uint64_t number;
        std::unique_ptr<T> object;
    };

    const char* name_;
    std::map<const T*, Entry> live_;
    std::deque<std::unique_ptr<T>> removed_;
};

}  // namespace moegrad::hostacl
