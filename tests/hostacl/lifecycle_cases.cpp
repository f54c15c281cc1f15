#include <thread>

#include "cases.h"

CASE(everything_needs_a_start)
{
    const char* const text = "the ACL is not initialised; call aclInit first";
    void* pointer = nullptr;
    REFUSED(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE, std::string("aclrtSetDevice: ") + text);
    REFUSED(aclrtMalloc(&pointer, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_UNINITIALIZE,
            std::string("aclrtMalloc: ") + text);
    REFUSED(aclrtCreateStream(&pointer), ACL_ERROR_UNINITIALIZE, std::string("aclrtCreateStream: ") + text);
    uint64_t size;
    REFUSED(aclGetIntArraySize(nullptr, &size), ACL_ERROR_UNINITIALIZE, std::string("aclGetIntArraySize: ") + text);
    NO_TENSOR(aclCreateIntArray(nullptr, 0), std::string("aclCreateIntArray: ") + text);
    NO_TENSOR(aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr),
              std::string("aclCreateTensor: ") + text);
    REFUSED(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: the ACL is not initialised");
    REFUSED(aclnnFinalize(), ACL_ERROR_UNINITIALIZE, std::string("aclnnFinalize: ") + text);
}

CASE(start_and_end_again)
{
    OK(aclInit(nullptr));
    REFUSED(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE, "aclInit: the ACL is initialised already");
    OK(aclFinalize());
    REFUSED(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: the ACL is not initialised");
    Begin();
    OK(aclrtFree(Device(8)));
    End();
}

CASE(no_device_survives_the_end)
{
    Begin();
    OK(aclFinalize());
    OK(aclInit(nullptr));
    int32_t device;
    REFUSED(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL,
            "aclrtGetDevice: this thread has no device; call aclrtSetDevice or aclrtSetCurrentContext first");
    OK(aclFinalize());
}

CASE(configuration_file)
{
    REFUSED(aclInit("/no/such/acl.json"), ACL_ERROR_INVALID_FILE,
            "aclInit: configPath names no readable file: /no/such/acl.json");
    OK(aclInit(__FILE__));
    OK(aclFinalize());
    OK(aclInit(""));
    OK(aclFinalize());
}

CASE(aclnn_alone_and_beside)
{
    OK(aclnnInit(nullptr));
    OK(aclrtSetDevice(0));
    OK(aclrtFree(Device(8)));
    OK(aclnnFinalize());
    TRUE(aclrtSetDevice(0) == ACL_ERROR_UNINITIALIZE);
    OK(aclInit(nullptr));
    OK(aclnnInit(nullptr));
    OK(aclnnFinalize());
    OK(aclrtSetDevice(0));
    OK(aclFinalize());
}

// Says on stderr, too, what the error text says.
CASE(leftovers)
{
    Begin();
    const int64_t dims[] = {2, 3};
    void* const device = Device(600);
    void* host = nullptr;
    OK(aclrtMallocHost(&host, 7));
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    OK(aclrtMemsetAsync(device, 600, 0, 600, stream));
    OK(aclrtMemsetAsync(device, 600, 0, 600, nullptr));
    TRUE(aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, device) != nullptr);
    TRUE(aclCreateIntArray(dims, 2) != nullptr);
    TRUE(NewExecutor("aclnnThing", 64, {}, [](void*) { return 0; }) != nullptr);
    aclrtEvent event;
    OK(aclrtCreateEvent(&event));
    aclrtContext context;
    OK(aclrtCreateContext(&context, 0));
    REFUSED(aclFinalize(), ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED,
            "aclFinalize: 9 problems\n"
            "not released: default stream of device 0: 1 task that nobody waited for\n"
            "not released: device memory #2: 600 bytes\n"
            "not released: host memory #3: 7 bytes\n"
            "not released: stream #4: 1 task that nobody waited for\n"
            "not released: tensor #5: 2x3 of type 0\n"
            "not released: int array #6: 2 numbers\n"
            "not released: executor #7 of aclnnThing: workspace of 64 bytes, second phase never called\n"
            "not released: event #8\n"
            "not released: context #9");
    REFUSED(aclrtFree(device), ACL_ERROR_UNINITIALIZE, "aclrtFree: *");
    OK(aclInit(nullptr));
    REFUSED(aclrtFree(device), ACL_ERROR_RT_PARAM_INVALID, "aclrtFree: devPtr is no device memory of this process: *");
    OK(aclFinalize());
}

CASE(exit_without_end)
{
    Begin();
    Device(12);
}

CASE(error_text_comes_once)
{
    Begin();
    TRUE(aclGetRecentErrMsg() == nullptr);
    TRUE(aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM);
    TRUE(aclrtFreeHost(nullptr) == ACL_ERROR_INVALID_PARAM);
    const char* const text = aclGetRecentErrMsg();
    TRUE(aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM);
    TRUE(std::string(text) == "aclrtFreeHost: hostPtr is null");
    TRUE(Message() == "aclrtFree: devPtr is null");
    TRUE(aclGetRecentErrMsg() == nullptr);
    End();
}

CASE(error_text_of_the_thread)
{
    Begin();
    TRUE(aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM);
    std::thread([] {
        TRUE(aclGetRecentErrMsg() == nullptr);
        void* data;
        REFUSED(aclrtMalloc(&data, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL,
                "aclrtMalloc: this thread has no device; call aclrtSetDevice or aclrtSetCurrentContext first");
    }).join();
    TRUE(Message() == "aclrtFree: devPtr is null");
    End();
}

CASE(what_is_there)
{
    OK(aclInit(nullptr));
    uint32_t count = 0;
    OK(aclrtGetDeviceCount(&count));
    TRUE(count == 8);
    aclrtRunMode mode = ACL_DEVICE;
    OK(aclrtGetRunMode(&mode));
    TRUE(mode == ACL_HOST);
    TRUE(std::string(aclrtGetSocName()) == "Ascend910B1");
    int32_t version[3] = {};
    OK(aclrtGetVersion(&version[0], &version[1], &version[2]));
    TRUE(version[0] == ACL_MAJOR_VERSION && version[1] == ACL_MINOR_VERSION && version[2] == ACL_PATCH_VERSION);
    REFUSED(aclrtGetVersion(&version[0], nullptr, &version[2]), ACL_ERROR_INVALID_PARAM,
            "aclrtGetVersion: a version is null");
    REFUSED(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM, "aclrtGetDeviceCount: count is null");
    OK(aclFinalize());
}

// Prints one line, or two with ASCEND_GLOBAL_LOG_LEVEL=1 in the environment.
CASE(log)
{
    ACL_APP_LOG(ACL_INFO, "%d rows", 3);
    ACL_APP_LOG(ACL_ERROR, "%s", "no rows");
}

CASE(half_precision)
{
    TRUE(aclFloatToFloat16(1.0f) == 0x3C00 && aclFloatToFloat16(-2.0f) == 0xC000);
    TRUE(aclFloatToFloat16(2049.0f) == 0x6800 && aclFloatToFloat16(2051.0f) == 0x6802);
    TRUE(aclFloatToFloat16(6e-8f) == 1 && aclFloatToFloat16(1e-9f) == 0);
    const float infinity = std::strtof("inf", nullptr);
    TRUE(aclFloatToFloat16(infinity) == 0x7BFF && aclFloatToFloat16(-infinity) == 0xFBFF);
    TRUE(aclFloatToFloat16(1e6f) == 0x7BFF && aclFloatToFloat16(std::strtof("-nan", nullptr)) == 0x7BFF);
    TRUE(aclFloat16ToFloat(0x7C00) == 65536.0f && aclFloat16ToFloat(0x7E00) == 98304.0f);
    TRUE(aclFloat16ToFloat(0xFBFF) == -65504.0f);
    for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
        const auto half = static_cast<aclFloat16>(bits);
        TRUE(aclFloatToFloat16(aclFloat16ToFloat(half)) == half);
    }
}

CASE(sizes_of_types)
{
    TRUE(aclDataTypeSize(ACL_BOOL) == 1 && aclDataTypeSize(ACL_BF16) == 2 && aclDataTypeSize(ACL_FLOAT) == 4);
    TRUE(aclDataTypeSize(ACL_INT64) == 8 && aclDataTypeSize(ACL_COMPLEX128) == 16 && aclDataTypeSize(ACL_INT4) == 0);
}
