#include <thread>

#include "cases.h"

CASE(device_numbers)
{
    OK(aclInit(nullptr));
    REFUSED(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID, "aclrtSetDevice: deviceId is -1, expected 0 to 7");
    REFUSED(aclrtSetDevice(8), ACL_ERROR_RT_INVALID_DEVICEID, "aclrtSetDevice: deviceId is 8, expected 0 to 7");
    REFUSED(aclrtResetDevice(8), ACL_ERROR_RT_INVALID_DEVICEID, "aclrtResetDevice: deviceId is 8, expected 0 to 7");
    aclrtContext context;
    REFUSED(aclrtCreateContext(&context, 9), ACL_ERROR_RT_INVALID_DEVICEID,
            "aclrtCreateContext: deviceId is 9, expected 0 to 7");
    OK(aclrtSetDevice(7));
    int32_t device = 0;
    OK(aclrtGetDevice(&device));
    TRUE(device == 7);
    OK(aclrtResetDevice(7));
    OK(aclFinalize());
}

CASE(resets_are_counted)
{
    Begin();
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    int32_t device = -1;
    OK(aclrtGetDevice(&device));
    OK(aclrtResetDevice(0));
    TRUE(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
    REFUSED(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL, "aclrtResetDevice: device 0 is not set");
    OK(aclFinalize());
}

CASE(resets_by_force_are_not_counted)
{
    Begin();
    OK(aclrtSetDevice(0));
    OK(aclrtResetDeviceForce(0));
    REFUSED(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_NULL, "aclrtResetDeviceForce: device 0 is not set");
    REFUSED(aclrtResetDeviceForce(8), ACL_ERROR_RT_INVALID_DEVICEID,
            "aclrtResetDeviceForce: deviceId is 8, expected 0 to 7");
    OK(aclFinalize());
}

// Notes on stderr what it released; that is no leak any more.
CASE(reset_releases_what_is_left)
{
    Begin();
    void* const data = Device(40);
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    aclrtEvent event;
    OK(aclrtCreateEvent(&event));
    OK(aclrtSetDevice(1));
    void* const other = Device(8);
    OK(aclrtResetDevice(0));
    OK(aclrtSetDevice(0));
    REFUSED(aclrtFree(data), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFree: devPtr is in device memory #2, which was released by aclrtResetDevice(0)");
    REFUSED(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtSynchronizeStream: stream names stream #3, which is gone");
    REFUSED(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtDestroyEvent: event names event #4, which is gone");
    OK(aclrtFree(other));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

CASE(reset_finishes_queued_work)
{
    Begin();
    void* host = nullptr;
    OK(aclrtMallocHost(&host, 8));
    void* const data = Device(8);
    OK(aclrtMemsetAsync(data, 8, 1, 8, nullptr));
    OK(aclrtMemcpyAsync(host, 8, data, 8, ACL_MEMCPY_DEVICE_TO_HOST, nullptr));
    TRUE(Bytes(host)[0] == 0xA5);
    OK(aclrtResetDevice(0));
    TRUE(Bytes(host)[0] == 1);
    OK(aclrtFreeHost(host));
    OK(aclFinalize());
}

CASE(device_of_a_thread)
{
    Begin();
    OK(aclrtSetDevice(1));
    std::thread([] {
        int32_t device;
        TRUE(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
        OK(aclrtSetDevice(0));
        OK(aclrtGetDevice(&device));
        TRUE(device == 0);
        OK(aclrtResetDevice(0));
    }).join();
    int32_t device;
    OK(aclrtGetDevice(&device));
    TRUE(device == 1);
    OK(aclrtResetDevice(1));
    End();
}

CASE(contexts)
{
    Begin();
    aclrtContext first;
    OK(aclrtGetCurrentContext(&first));
    aclrtContext second;
    OK(aclrtCreateContext(&second, 1));
    int32_t device = 0;
    OK(aclrtGetDevice(&device));
    TRUE(device == 1);
    OK(aclrtSetCurrentContext(first));
    OK(aclrtGetDevice(&device));
    TRUE(device == 0);
    REFUSED(aclrtDestroyContext(first), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtDestroyContext: context #1 was made by aclrtSetDevice; only aclrtResetDevice releases it");
    OK(aclrtSetCurrentContext(second));
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    REFUSED(aclrtDestroyContext(second), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtDestroyContext: context #2 still has stream #3; destroy it first");
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyContext(second));
    REFUSED(aclrtSetCurrentContext(second), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtSetCurrentContext: context names context #2, which is gone");
    REFUSED(aclrtSetCurrentContext(stream), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtSetCurrentContext: context names stream #3, expected one of kind context");
    REFUSED(aclrtSetCurrentContext(&device), ACL_ERROR_RT_INVALID_HANDLE,
            "aclrtSetCurrentContext: context is no context of this process: *");
    REFUSED(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM, "aclrtSetCurrentContext: context is null");
    TRUE(aclrtGetCurrentContext(&second) == ACL_ERROR_RT_CONTEXT_NULL);
    End();
}
