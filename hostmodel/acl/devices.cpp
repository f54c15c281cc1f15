// Devices.
#include <cstdio>

#include "call.h"

namespace moegrad::hostacl {

namespace {

void Note(const std::string& by, const std::string& what)
{
    std::fprintf(stderr, "host ACL: %s releases %s\n", by.c_str(), what.c_str());
}

// The context of aclrtSetDevice and its streams go silently, as documented. What the client should have released before
// (explicit contexts, events, memory) is noted on stderr, and is no leak of aclFinalize any more.
void ReleaseDevice(int32_t device, const std::string& by)
{
    const auto contexts = Now().contexts.objects();
    for (const auto& [handle, context] : contexts) {
        if (context->device != device) {
            continue;
        }
        if (!context->made_by_set_device) {
            Note(by, Text("context #", context->number));
        }
        RemoveContext(*context);
    }
    const auto events = Now().events.objects();
    for (const auto& [handle, event] : events) {
        if (event->device == device) {
            Note(by, Text("event #", event->number));
            Now().events.Remove(event->number);
        }
    }
    for (Block* block : Now().memory.Alive()) {
        if (block->space == Space::kDevice && block->device == device) {
            Note(by, Text(block->Name(), ": ", block->bytes, " bytes"));
            Now().memory.Release(block, "released by " + by);
        }
    }
    Now().devices[static_cast<size_t>(device)] = Device{};
}

int ResetDevice(const std::string& name, int32_t device_id, bool by_force)
{
    const Call call(name);
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (const int error = call.NeedDeviceId(device_id)) {
        return error;
    }
    Device& device = Now().devices[static_cast<size_t>(device_id)];
    if (device.uses == 0) {
        return call.Fail(ACL_ERROR_RT_CONTEXT_NULL, "device ", device_id, " is not set");
    }
    if (--device.uses > 0 && !by_force) {
        return ACL_SUCCESS;
    }
    const int error = FinishDevice(device_id);
    ReleaseDevice(device_id, Text(name, "(", device_id, ")"));
    return error;
}

}  // namespace

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclError aclrtGetDeviceCount(uint32_t* count)
{
    const Call call("aclrtGetDeviceCount");
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (const int error = call.NeedArgument(count, "count")) {
        return error;
    }
    *count = kDevices;
    return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t deviceId)
{
    const Call call("aclrtSetDevice");
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (const int error = call.NeedDeviceId(deviceId)) {
        return error;
    }
    Device& device = Now().devices[static_cast<size_t>(deviceId)];
    if (device.uses++ == 0) {
        device.context = AddContext(deviceId, true);
    }
    SetThreadContext(device.context);
    return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* deviceId)
{
    const Call call("aclrtGetDevice");
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    if (const int error = call.NeedArgument(deviceId, "deviceId")) {
        return error;
    }
    *deviceId = context->device;
    return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t deviceId) { return ResetDevice("aclrtResetDevice", deviceId, false); }

aclError aclrtResetDeviceForce(int32_t deviceId) { return ResetDevice("aclrtResetDeviceForce", deviceId, true); }

aclError aclrtSynchronizeDevice(void)
{
    const Call call("aclrtSynchronizeDevice");
    Context* context;
    if (const int error = call.NeedContext(&context)) {
        return error;
    }
    return FinishDevice(context->device);
}

aclError aclrtGetRunMode(aclrtRunMode* runMode)
{
    const Call call("aclrtGetRunMode");
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (const int error = call.NeedArgument(runMode, "runMode")) {
        return error;
    }
    *runMode = ACL_HOST;
    return ACL_SUCCESS;
}
