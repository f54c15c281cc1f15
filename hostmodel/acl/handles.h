// Contexts, streams, events and executors are known to clients by handles.
//
// A handle is a number in the clothes of a pointer: no address of this process, and never used twice. So a stale,
// foreign or mistaken handle is told from a live one, and nothing that a client passes is ever dereferenced.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace moegrad::hostacl {

enum class Kind : uint64_t { kContext = 1, kStream, kEvent, kExecutor };

// Numbers objects of all kinds in the order of their creation.
uint64_t NextNumber();

void* ToHandle(Kind kind, uint64_t number);

// What a handle that names no live object of the wanted kind is instead.
std::string DescribeHandle(const void* handle, Kind wanted);

// The live objects of one kind. T has a `number`.
template <typename T, Kind kKind>
class Table {
public:
    void* Add(std::shared_ptr<T> object)
    {
        void* const handle = ToHandle(kKind, object->number);
        objects_.emplace(handle, std::move(object));
        return handle;
    }

    std::shared_ptr<T> Find(const void* handle) const
    {
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }

    void Remove(uint64_t number) { objects_.erase(ToHandle(kKind, number)); }

    const std::map<const void*, std::shared_ptr<T>>& objects() const { return objects_; }

private:
    std::map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace moegrad::hostacl
