#include <thread>

#include "cases.h"

CASE(allocations_are_aligned_and_poisoned)
{
    Begin();
    void* const data = Device(1000);
    void* host = nullptr;
    OK(aclrtMallocHost(&host, 10));
    TRUE(reinterpret_cast<uint64_t>(data) % 512 == 0 && reinterpret_cast<uint64_t>(host) % 64 == 0);
    TRUE(All(Read(data, 1000), 0xA5));
    TRUE(All({Bytes(host), Bytes(host) + 10}, 0xA5));
    void* small = nullptr;
    OK(aclrtMallocAlign32(&small, 1, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtFree(small));
    OK(aclrtFree(data));
    OK(aclrtFreeHost(host));
    End();
}

CASE(sizes_and_policies)
{
    Begin();
    void* data = nullptr;
    REFUSED(aclrtMalloc(&data, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM,
            "aclrtMalloc: size is 0, expected more");
    REFUSED(aclrtMallocHost(&data, 0), ACL_ERROR_INVALID_PARAM, "aclrtMallocHost: size is 0, expected more");
    REFUSED(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM, "aclrtMalloc: devPtr is null");
    REFUSED(aclrtMallocHost(nullptr, 8), ACL_ERROR_INVALID_PARAM, "aclrtMallocHost: hostPtr is null");
    const auto combined = static_cast<aclrtMemMallocPolicy>(ACL_MEM_TYPE_HIGH_BAND_WIDTH | ACL_MEM_MALLOC_HUGE_ONLY);
    REFUSED(aclrtMalloc(&data, 8, combined), ACL_ERROR_INVALID_PARAM,
            "aclrtMalloc: policy is 4097, expected one policy, not several");
    const int policies[] = {0, 1, 2, 3, 4, 5, 6, 7, 0x100, 0x1000, 0x100000, 99};
    for (const int policy : policies) {
        OK(aclrtMalloc(&data, 8, static_cast<aclrtMemMallocPolicy>(policy)));
        OK(aclrtFree(data));
    }
    End();
}

CASE(memory_of_a_device_is_limited)
{
    Begin();
    size_t free = 0;
    size_t total = 0;
    void* const data = Device(1000);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    TRUE(total == size_t{64} << 30 && free == total - 1000);
    void* more = nullptr;
    REFUSED(aclrtMalloc(&more, total, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION,
            "aclrtMalloc: out of memory: size is 68719476736, device 0 has 68719475736 bytes left");
    REFUSED(aclrtMallocHost(&more, size_t{1} << 50), ACL_ERROR_RT_MEMORY_ALLOCATION,
            "aclrtMallocHost: out of memory: size is 1125899906842624");
    OK(aclrtGetMemInfo(ACL_DDR_MEM, &free, &total));
    TRUE(total == 0 && free == 0);
    REFUSED(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), ACL_ERROR_INVALID_PARAM, "aclrtGetMemInfo: free is null");
    OK(aclrtFree(data));
    End();
}

CASE(wrong_frees)
{
    Begin();
    void* const data = Device(100);
    void* host = nullptr;
    OK(aclrtMallocHost(&host, 100));
    REFUSED(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM, "aclrtFree: devPtr is null");
    REFUSED(aclrtFree(Bytes(data) + 32), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFree: devPtr is 32 bytes into device memory #2, expected its start");
    REFUSED(aclrtFree(Bytes(data) - 1), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFree: devPtr covers 0 bytes from byte -1 of device memory #2, which has 100");
    REFUSED(aclrtFree(&host), ACL_ERROR_RT_PARAM_INVALID, "aclrtFree: devPtr is no device memory of this process: *");
    REFUSED(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFree: devPtr is in host memory #3, expected device memory");
    REFUSED(aclrtFreeHost(data), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFreeHost: hostPtr is in device memory #2, expected host memory");
    OK(aclrtFree(data));
    OK(aclrtFreeHost(host));
    REFUSED(aclrtFree(data), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFree: devPtr is in device memory #2, which was freed");
    REFUSED(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtFreeHost: hostPtr is in host memory #3, which was freed");
    End();
}

CASE(writes_around_are_found_at_free)
{
    Begin();
    void* const before = Device(100);
    Bytes(before)[-4] = 0;
    REFUSED(aclrtFree(before), ACL_ERROR_RT_MEMORY_FREE,
            "aclrtFree: device memory #2 (100 bytes) was written at byte -4, before its start");
    void* const behind = Device(100);
    Bytes(behind)[100] = 0;
    REFUSED(aclrtFree(behind), ACL_ERROR_RT_MEMORY_FREE,
            "aclrtFree: device memory #3 (100 bytes) was written at byte 100, behind its end");
    void* host = nullptr;
    OK(aclrtMallocHost(&host, 512));
    Bytes(host)[1023] = 0;
    REFUSED(aclrtFreeHost(host), ACL_ERROR_RT_MEMORY_FREE,
            "aclrtFreeHost: host memory #4 (512 bytes) was written at byte 1023, behind its end");
    End();
}

CASE(writes_around_are_found_at_the_end)
{
    Begin();
    void* const data = Device(100);
    Bytes(data)[101] = 0;
    void* const gone = Device(100);
    OK(aclrtFree(gone));
    Bytes(gone)[7] = 0;
    REFUSED(aclFinalize(), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED,
            "aclFinalize: 3 problems\n"
            "not released: device memory #2: 100 bytes\n"
            "damaged: device memory #2 (100 bytes) was written at byte 101, behind its end\n"
            "damaged: device memory #3 (100 bytes) was written at byte 7, after it was freed*");
}

CASE(writes_around_are_found_on_demand)
{
    Begin();
    void* const data = Device(100);
    TRUE(CheckMemory().empty());
    Bytes(data)[-1] = 0;
    TRUE(CheckMemory() == "device memory #2 (100 bytes) was written at byte -1, before its start");
    TRUE(CheckMemory().empty());
    OK(aclrtFree(data));
    End();
}

CASE(quarantine_is_bounded)
{
    Begin();
    void* const early = Device(64);
    OK(aclrtFree(early));
    Bytes(early)[0] = 0;
    for (int i = 0; i < 1200; ++i) {
        OK(aclrtFree(Device(64)));
    }
    REFUSED(aclrtFree(early), ACL_ERROR_RT_PARAM_INVALID, "aclrtFree: devPtr is no device memory of this process: *");
    void* const large = Device(size_t{17} << 20);
    OK(aclrtFree(large));
    REFUSED(aclrtFree(large), ACL_ERROR_RT_PARAM_INVALID, "aclrtFree: devPtr is no device memory of this process: *");
    TRUE(CheckMemory() == "device memory #2 (64 bytes) was written at byte 0, after it was freed");
    End();
}

CASE(freed_memory_is_poisoned)
{
    Begin();
    void* const data = Device(64);
    OK(aclrtMemset(data, 64, 1, 64));
    OK(aclrtFree(data));
    TRUE(All({Bytes(data), Bytes(data) + 64}, 0xDE));
    uint8_t host[64];
    REFUSED(aclrtMemcpy(host, 64, data, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID,
            "aclrtMemcpy: src is in device memory #2, which was freed (ACL_MEMCPY_DEVICE_TO_HOST)");
    End();
}

CASE(is_device_memory)
{
    Begin();
    uint8_t* const data = Bytes(Device(100));
    std::string why;
    TRUE(IsDeviceMemory(data + 4, 96, &why) && why.empty());
    TRUE(!IsDeviceMemory(data + 4, 97, &why));
    TRUE(why == "covers 97 bytes from byte 4 of device memory #2, which has 100");
    TRUE(!IsDeviceMemory(nullptr, 1, &why) && why == "is null");
    TRUE(!IsDeviceMemory(&why, 1, &why));
    OK(aclrtFree(data));
    End();
}

CASE(threads_share_the_memory)
{
    Begin();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([i] {
            OK(aclrtSetDevice(0));
            aclrtStream stream;
            OK(aclrtCreateStream(&stream));
            for (int round = 0; round < 50; ++round) {
                void* const data = Device(256);
                OK(aclrtMemsetAsync(data, 256, i, 256, stream));
                OK(aclrtSynchronizeStream(stream));
                TRUE(All(Read(data, 256), static_cast<uint8_t>(i)));
                OK(aclrtFree(data));
            }
            OK(aclrtDestroyStream(stream));
            OK(aclrtResetDevice(0));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    End();
}
