// Allocation and release of device and host memory.
#include "call.h"
#include "soc.h"

namespace moegrad::hostacl {

namespace {

int CheckSize(const Call& call, size_t size)
{
    return size != 0 ? ACL_SUCCESS : call.Fail(ACL_ERROR_INVALID_PARAM, "size is 0, expected more");
}

// One policy by itself is allowed, and so are unknown values; a combination of known ones is not.
int CheckPolicy(const Call& call, aclrtMemMallocPolicy policy)
{
    constexpr uint32_t kKinds =
        ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | ACL_MEM_ACCESS_USER_SPACE_READONLY;
    const auto bits = static_cast<uint32_t>(policy);
    const uint32_t kinds = bits & kKinds;
    const bool combined = kinds != 0 && (bits != kinds || (kinds & (kinds - 1)) != 0);
    return combined ? call.Fail(ACL_ERROR_INVALID_PARAM, "policy is ", bits, ", expected one policy, not several")
                    : ACL_SUCCESS;
}

int AllocateOnDevice(const Call& call, void** address, size_t size, aclrtMemMallocPolicy policy)
{
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = call.NeedArgument(address, "devPtr")) {
        return error;
    }
    if (const int error = CheckSize(call, size)) {
        return error;
    }
    if (const int error = CheckPolicy(call, policy)) {
        return error;
    }
    const uint64_t left = DeviceBytes() - Now().memory.BytesInUse(context->device);
    Block* const block = size <= left ? Now().memory.Allocate(Space::kDevice, context->device, size) : nullptr;
    if (block == nullptr) {
        return call.Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "out of memory: size is ", size, ", device ", context->device,
                         " has ", left, " bytes left");
    }
    *address = block->data;
    return ACL_SUCCESS;
}

// The block that starts at `address`, for a function that releases it.
int NeedBlock(const Call& call, void* address, Space space, const char* argument, Block** block)
{
    if (const int error = call.NeedArgument(address, argument)) {
        return error;
    }
    const char* const name = space == Space::kDevice ? "device" : "host";
    *block = Now().memory.Around(address);
    if (*block == nullptr) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, argument, " is no ", name, " memory of this process: ", address);
    }
    const std::string trouble = Now().memory.Trouble(address, 0, space);
    if (!trouble.empty()) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, argument, " ", trouble);
    }
    if ((*block)->data != address) {
        return call.Fail(ACL_ERROR_RT_PARAM_INVALID, argument, " is ",
                         static_cast<uint8_t*>(address) - (*block)->data, " bytes into ", (*block)->Name(),
                         ", expected its start");
    }
    return ACL_SUCCESS;
}

// A damaged block is released all the same.
int Free(const Call& call, Block* block)
{
    const std::string damage = Memory::Damage(block);
    Now().memory.Release(block, "freed");
    return damage.empty() ? ACL_SUCCESS : call.Fail(ACL_ERROR_RT_MEMORY_FREE, damage);
}

int FreeOnDevice(const Call& call, void* address, bool wait)
{
    if (const int error = call.NeedInit()) {
        return error;
    }
    Block* block;
    if (const int error = NeedBlock(call, address, Space::kDevice, "devPtr", &block)) {
        return error;
    }
    const int error = wait ? FinishDevice(block->device) : ACL_SUCCESS;
    const int damage = Free(call, block);
    return error != ACL_SUCCESS ? error : damage;
}

}  // namespace

bool IsDeviceMemory(const void* address, uint64_t bytes, std::string* why)
{
    const std::lock_guard<std::recursive_mutex> lock(Mutex());
    *why = Now().memory.Trouble(address, bytes, Space::kDevice);
    return why->empty();
}

std::string CheckMemory()
{
    const std::lock_guard<std::recursive_mutex> lock(Mutex());
    std::string all;
    for (const std::string& damage : Now().memory.AllDamage()) {
        all += (all.empty() ? "" : "; ") + damage;
    }
    return all;
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    return AllocateOnDevice(Call("aclrtMalloc"), devPtr, size, policy);
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    return AllocateOnDevice(Call("aclrtMallocAlign32"), devPtr, size, policy);
}

// As documented, this waits for nothing: queued work that still needs the memory fails when it runs.
aclError aclrtFree(void* devPtr) { return FreeOnDevice(Call("aclrtFree"), devPtr, false); }

aclError aclrtFreeWithDevSync(void* devPtr) { return FreeOnDevice(Call("aclrtFreeWithDevSync"), devPtr, true); }

aclError aclrtMallocHost(void** hostPtr, size_t size)
{
    const Call call("aclrtMallocHost");
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = call.NeedArgument(hostPtr, "hostPtr")) {
        return error;
    }
    if (const int error = CheckSize(call, size)) {
        return error;
    }
    // What no machine has is refused before the allocator sees it.
    Block* const block = size <= DeviceBytes() ? Now().memory.Allocate(Space::kHost, context->device, size) : nullptr;
    if (block == nullptr) {
        return call.Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "out of memory: size is ", size);
    }
    *hostPtr = block->data;
    return ACL_SUCCESS;
}

aclError aclrtFreeHost(void* hostPtr)
{
    const Call call("aclrtFreeHost");
    if (const int error = call.NeedInit()) {
        return error;
    }
    Block* block;
    if (const int error = NeedBlock(call, hostPtr, Space::kHost, "hostPtr", &block)) {
        return error;
    }
    return Free(call, block);
}

// The devices have HBM and no DDR of their own; an attribute that the hardware has not gives zeros.
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total)
{
    const Call call("aclrtGetMemInfo");
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = call.NeedArgument(free, "free")) {
        return error;
    }
    if (const int error = call.NeedArgument(total, "total")) {
        return error;
    }
    const bool hbm = attr == ACL_HBM_MEM || attr == ACL_HBM_MEM_HUGE || attr == ACL_HBM_MEM_NORMAL;
    *total = hbm ? DeviceBytes() : 0;
    *free = hbm ? *total - Now().memory.BytesInUse(context->device) : 0;
    return ACL_SUCCESS;
}
