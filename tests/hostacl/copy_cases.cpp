#include "cases.h"

CASE(copies_both_ways)
{
    Begin();
    const std::vector<uint8_t> sent = {1, 2, 3, 4};
    std::vector<uint8_t> got(4);
    void* const a = Device(4);
    void* const b = Device(4);
    OK(aclrtMemcpy(a, 4, sent.data(), 4, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(b, 4, a, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(got.data(), 4, b, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    TRUE(got == sent);
    OK(aclrtMemset(a, 4, 0x107, 2));
    OK(aclrtMemcpy(got.data(), 4, a, 4, ACL_MEMCPY_DEFAULT));
    TRUE((got == std::vector<uint8_t>{7, 7, 3, 4}));
    OK(aclrtMemcpy(b, 4, got.data(), 4, ACL_MEMCPY_DEFAULT));
    std::vector<uint8_t> again(4);
    OK(aclrtMemcpy(again.data(), 4, got.data(), 4, ACL_MEMCPY_HOST_TO_HOST));
    TRUE(again == got);
    OK(aclrtMemcpy(Bytes(a) + 2, 2, sent.data(), 2, ACL_MEMCPY_HOST_TO_DEVICE));
    TRUE((Read(a, 4) == std::vector<uint8_t>{7, 7, 1, 2}));
    OK(aclrtFree(a));
    OK(aclrtFree(b));
    End();
}

CASE(wrong_counts)
{
    Begin();
    void* const data = Device(100);
    uint8_t host[200] = {};
    REFUSED(aclrtMemcpy(nullptr, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM,
            "aclrtMemcpy: dst is null");
    REFUSED(aclrtMemcpy(data, 8, nullptr, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM,
            "aclrtMemcpy: src is null");
    REFUSED(aclrtMemcpy(data, 8, host, 8, static_cast<aclrtMemcpyKind>(7)), ACL_ERROR_INVALID_PARAM,
            "aclrtMemcpy: kind is 7, expected 0 to 4");
    REFUSED(aclrtMemcpy(data, 100, host, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: count is 0, expected more");
    REFUSED(aclrtMemcpy(data, 8, host, 9, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: count is 9, more than destMax, which is 8");
    REFUSED(aclrtMemcpy(data, 101, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: dst covers 101 bytes from byte 0 of device memory #2, which has 100 "
            "(ACL_MEMCPY_HOST_TO_DEVICE)");
    REFUSED(aclrtMemcpy(host, 200, Bytes(data) + 90, 11, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: src covers 11 bytes from byte 90 of device memory #2, which has 100 "
            "(ACL_MEMCPY_DEVICE_TO_HOST)");
    REFUSED(aclrtMemset(data, 8, 0, 9), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemset: count is 9, more than maxCount, which is 8");
    REFUSED(aclrtMemset(data, 101, 0, 8), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemset: devPtr covers 101 bytes from byte 0 of device memory #2, which has 100");
    OK(aclrtFree(data));
    End();
}

CASE(wrong_kinds)
{
    Begin();
    void* const data = Device(8);
    void* pinned = nullptr;
    OK(aclrtMallocHost(&pinned, 8));
    uint8_t host[8] = {};
    REFUSED(aclrtMemcpy(host, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: dst is no device memory: *");
    REFUSED(aclrtMemcpy(data, 8, data, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: src is in device memory #2, expected host memory (ACL_MEMCPY_HOST_TO_DEVICE)");
    REFUSED(aclrtMemcpy(data, 8, data, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: dst is in device memory #2, expected host memory (ACL_MEMCPY_DEVICE_TO_HOST)");
    REFUSED(aclrtMemcpy(host, 8, host, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: src is no device memory: *");
    REFUSED(aclrtMemcpy(data, 8, pinned, 8, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: src is in host memory #3, expected device memory (ACL_MEMCPY_DEVICE_TO_DEVICE)");
    REFUSED(aclrtMemcpy(host, 8, data, 8, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: src is in device memory #2, expected host memory (ACL_MEMCPY_HOST_TO_HOST)");
    REFUSED(aclrtMemset(host, 8, 0, 8), ACL_ERROR_RT_PARAM_INVALID, "aclrtMemset: devPtr is no device memory: *");
    OK(aclrtMemset(pinned, 8, 0, 8));
    TRUE(Bytes(pinned)[7] == 0);
    OK(aclrtFree(data));
    OK(aclrtFreeHost(pinned));
    End();
}

CASE(no_copies_between_devices)
{
    Begin();
    void* const here = Device(8);
    OK(aclrtSetDevice(1));
    void* const there = Device(8);
    REFUSED(aclrtMemcpy(there, 8, here, 8, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            "aclrtMemcpy: src is on device 0 and dst on device 1; copies between devices are not modelled");
    OK(aclrtFree(here));
    OK(aclrtFree(there));
    OK(aclrtResetDevice(1));
    End();
}

CASE(queued_copies_run_when_waited_for)
{
    Begin();
    void* pinned = nullptr;
    OK(aclrtMallocHost(&pinned, 8));
    std::memset(pinned, 3, 8);
    void* const data = Device(8);
    OK(aclrtMemcpyAsync(data, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
    TRUE(All(Read(data, 8), 0xA5));
    OK(aclrtSynchronizeStream(nullptr));
    TRUE(All(Read(data, 8), 3));
    OK(aclrtMemsetAsync(data, 8, 4, 8, nullptr));
    TRUE(All(Read(data, 8), 3));
    OK(aclrtSynchronizeDevice());
    TRUE(All(Read(data, 8), 4));
    OK(aclrtFree(data));
    OK(aclrtFreeHost(pinned));
    End();
}

CASE(queued_copies_of_ordinary_memory_wait)
{
    Begin();
    void* const data = Device(8);
    uint8_t host[8] = {};
    OK(aclrtMemsetAsync(data, 8, 5, 8, nullptr));
    OK(aclrtMemcpyAsync(host, 8, data, 8, ACL_MEMCPY_DEVICE_TO_HOST, nullptr));
    TRUE(host[7] == 5);
    OK(aclrtFree(data));
    End();
}

CASE(queued_copies_are_checked_twice)
{
    Begin();
    void* pinned = nullptr;
    OK(aclrtMallocHost(&pinned, 8));
    void* const data = Device(8);
    uint8_t host[8] = {};
    REFUSED(aclrtMemcpyAsync(data, 9, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, nullptr), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpyAsync: dst covers 9 bytes from byte 0 of device memory #3, which has 8 "
            "(ACL_MEMCPY_HOST_TO_DEVICE)");
    REFUSED(aclrtMemcpyAsync(host, 8, pinned, 8, ACL_MEMCPY_HOST_TO_HOST, nullptr), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            "aclrtMemcpyAsync: copies from host to host cannot be queued");
    OK(aclrtMemcpyAsync(data, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
    OK(aclrtFree(data));
    REFUSED(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpyAsync: dst is in device memory #3, which was freed (ACL_MEMCPY_HOST_TO_DEVICE)");
    OK(aclrtSynchronizeStream(nullptr));
    void* const fresh = Device(8);
    OK(aclrtMemsetAsync(fresh, 8, 0, 8, nullptr));
    OK(aclrtFree(fresh));
    REFUSED(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemsetAsync: devPtr is in device memory #4, which was freed");
    OK(aclrtFreeHost(pinned));
    End();
}

// A block of this size leaves the quarantine at once: only its number tells that it is not the one of the call.
CASE(queued_copies_know_their_memory)
{
    Begin();
    const size_t bytes = size_t{17} << 20;
    void* pinned = nullptr;
    OK(aclrtMallocHost(&pinned, bytes));
    void* const data = Device(8);
    OK(aclrtMemcpyAsync(data, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
    OK(aclrtFreeHost(pinned));
    REFUSED(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpyAsync: src was freed since the copy was queued (ACL_MEMCPY_HOST_TO_DEVICE)");
    OK(aclrtFree(data));
    End();
}
