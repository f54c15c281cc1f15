// Copies and fills, at once and queued.
#include <cstring>

#include "call.h"

namespace moegrad::hostacl {

namespace {

const char* NameOf(aclrtMemcpyKind kind)
{
    static const char* const names[] = {"ACL_MEMCPY_HOST_TO_HOST", "ACL_MEMCPY_HOST_TO_DEVICE",
                                        "ACL_MEMCPY_DEVICE_TO_HOST", "ACL_MEMCPY_DEVICE_TO_DEVICE",
                                        "ACL_MEMCPY_DEFAULT"};
    return names[kind];
}

uint64_t NumberOf(const void* address)
{
    const Block* const block = Now().memory.Around(address);
    return block == nullptr ? 0 : block->number;
}

// One side of a copy.
struct Place {
    const void* address;
    size_t bytes;
    Space space;
    uint64_t block;  // around it when the call was made; 0 for memory that the run time did not allocate
};

// ACL_MEMCPY_DEFAULT goes by the address.
Place PlaceOf(const void* address, size_t bytes, aclrtMemcpyKind kind, bool device)
{
    const Block* const block = Now().memory.Around(address);
    const Space by_address = block == nullptr ? Space::kHost : block->space;
    const Space by_kind = device ? Space::kDevice : Space::kHost;
    return {address, bytes, kind == ACL_MEMCPY_DEFAULT ? by_address : by_kind, NumberOf(address)};
}

struct Copy {
    void* target;
    size_t count;
    aclrtMemcpyKind kind;
    Place to;
    Place from;

    void Do() const { std::memmove(target, from.address, count); }
};

Copy MakeCopy(void* dst, size_t dst_max, const void* src, size_t count, aclrtMemcpyKind kind)
{
    const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    return {dst, count, kind, PlaceOf(dst, dst_max, kind, to_device), PlaceOf(src, count, kind, from_device)};
}

int CheckCount(const Call& call, size_t max, size_t count, const char* max_name)
{
    if (count == 0) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, "count is 0, expected more");
    }
    if (count > max) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, "count is ", count, ", more than ", max_name, ", which is ", max);
    }
    return ACL_SUCCESS;
}

int CheckPlace(const Call& call, const Place& place, const char* argument, aclrtMemcpyKind kind)
{
    std::string trouble = Now().memory.Trouble(place.address, place.bytes, place.space);
    if (trouble.empty() && NumberOf(place.address) != place.block) {
        trouble = "was freed since the copy was queued";
    }
    return trouble.empty() ? ACL_SUCCESS
                           : call.Fail(ACL_ERROR_RT_PARAM_INVALID, argument, " ", trouble, " (", NameOf(kind), ")");
}

int CheckPlaces(const Call& call, const Copy& copy)
{
    if (const int error = CheckPlace(call, copy.to, "dst", copy.kind)) {
        return error;
    }
    return CheckPlace(call, copy.from, "src", copy.kind);
}

int CheckCopy(const Call& call, const Copy& copy)
{
    if (const int error = call.NeedArgument(copy.target, "dst")) {
        return error;
    }
    if (const int error = call.NeedArgument(copy.from.address, "src")) {
        return error;
    }
    if (copy.kind < ACL_MEMCPY_HOST_TO_HOST || copy.kind > ACL_MEMCPY_DEFAULT) {
        return call.Fail(ACL_ERROR_INVALID_PARAM, "kind is ", static_cast<int>(copy.kind), ", expected 0 to 4");
    }
    if (const int error = CheckCount(call, copy.to.bytes, copy.count, "destMax")) {
        return error;
    }
    if (const int error = CheckPlaces(call, copy)) {
        return error;
    }
    if (copy.from.space == Space::kDevice && copy.to.space == Space::kDevice) {
        const int32_t from = Now().memory.Around(copy.from.address)->device;
        const int32_t to = Now().memory.Around(copy.target)->device;
        if (from != to) {
            return call.Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "src is on device ", from, " and dst on device ", to,
                             "; copies between devices are not modelled");
        }
    }
    return ACL_SUCCESS;
}

// The fill of device memory, or of host memory from aclrtMallocHost: other host memory is documented as undefined.
struct Fill {
    void* address;
    size_t max;
    int32_t value;
    size_t count;
};

int CheckFill(const Call& call, const Fill& fill)
{
    if (const int error = call.NeedArgument(fill.address, "devPtr")) {
        return error;
    }
    if (const int error = CheckCount(call, fill.max, fill.count, "maxCount")) {
        return error;
    }
    const Block* const block = Now().memory.Around(fill.address);
    const Space space = block == nullptr ? Space::kDevice : block->space;
    const std::string trouble = Now().memory.Trouble(fill.address, fill.max, space);
    return trouble.empty() ? ACL_SUCCESS : call.Fail(ACL_ERROR_RT_PARAM_INVALID, "devPtr ", trouble);
}

}  // namespace

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind)
{
    const Call call("aclrtMemcpy");
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    const Copy copy = MakeCopy(dst, destMax, src, count, kind);
    if (const int error = CheckCopy(call, copy)) {
        return error;
    }
    copy.Do();
    return ACL_SUCCESS;
}

// As documented: the call waits for its copy if host memory is not from aclrtMallocHost, and host to host is refused.
aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream)
{
    static const char* const name = "aclrtMemcpyAsync";
    const Call call(name);
    std::shared_ptr<Stream> queue;
    if (const int error = call.NeedStream(stream, &queue)) {
        return error;
    }
    const Copy copy = MakeCopy(dst, destMax, src, count, kind);
    if (const int error = CheckCopy(call, copy)) {
        return error;
    }
    if (copy.from.space == Space::kHost && copy.to.space == Space::kHost) {
        return call.Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "copies from host to host cannot be queued");
    }
    queue->tasks.push_back([copy] {
        const Call later(name);
        if (const int error = CheckPlaces(later, copy)) {
            return error;
        }
        copy.Do();
        return static_cast<int>(ACL_SUCCESS);
    });
    return copy.to.block == 0 || copy.from.block == 0 ? Finish(*queue) : ACL_SUCCESS;
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count)
{
    const Call call("aclrtMemset");
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = CheckFill(call, {devPtr, maxCount, value, count})) {
        return error;
    }
    std::memset(devPtr, value, count);
    return ACL_SUCCESS;
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
{
    static const char* const name = "aclrtMemsetAsync";
    const Call call(name);
    std::shared_ptr<Stream> queue;
    if (const int error = call.NeedStream(stream, &queue)) {
        return error;
    }
    const Fill fill{devPtr, maxCount, value, count};
    if (const int error = CheckFill(call, fill)) {
        return error;
    }
    queue->tasks.push_back([fill] {
        const Call later(name);
        if (const int error = CheckFill(later, fill)) {
            return error;
        }
        std::memset(fill.address, fill.value, fill.count);
        return static_cast<int>(ACL_SUCCESS);
    });
    return ACL_SUCCESS;
}
