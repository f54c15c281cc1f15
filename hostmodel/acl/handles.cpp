#include "handles.h"

#include <atomic>

#include "text.h"

namespace moegrad::hostacl {

namespace {

// No user space address of a 64-bit machine starts with these bits.
constexpr uint64_t kTag = 0xAC10;
constexpr int kTagShift = 48;
constexpr uint64_t kNumberMask = (uint64_t{1} << kTagShift) - 1;

const char* NameOf(Kind kind)
{
    switch (kind) {
        case Kind::kContext: return "context";
        case Kind::kStream: return "stream";
        case Kind::kEvent: return "event";
        case Kind::kExecutor: return "executor";
    }
    return "";
}

}  // namespace

uint64_t NextNumber()
{
    static std::atomic<uint64_t> last{0};
    return ++last;
}

void* ToHandle(Kind kind, uint64_t number)
{
    static_assert(sizeof(void*) == sizeof(uint64_t), "handles need 64-bit pointers");
    return reinterpret_cast<void*>((kTag + static_cast<uint64_t>(kind)) << kTagShift | number);
}

std::string DescribeHandle(const void* handle, Kind wanted)
{
    if (handle == nullptr) {
        return "is null";
    }
    const auto bits = reinterpret_cast<uint64_t>(handle);
    const uint64_t kind = (bits >> kTagShift) - kTag;
    if (kind < static_cast<uint64_t>(Kind::kContext) || kind > static_cast<uint64_t>(Kind::kExecutor)) {
        return Text("is no ", NameOf(wanted), " of this process: ", handle);
    }
    const char* const name = NameOf(static_cast<Kind>(kind));
    const uint64_t number = bits & kNumberMask;
    if (static_cast<Kind>(kind) == wanted) {
        return Text("names ", name, " #", number, ", which is gone");
    }
    return Text("names ", name, " #", number, ", expected one of kind ", NameOf(wanted));
}

}  // namespace moegrad::hostacl
