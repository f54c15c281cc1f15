/* A client in C: adds up what an asynchronous copy brought, and ends clean. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

#define CHECK(call)                                                              \
    do {                                                                         \
        const int code = (call);                                                 \
        if (code != ACL_SUCCESS) {                                               \
            const char* const text = aclGetRecentErrMsg();                       \
            printf("%s: %d: %s\n", #call, code, text == NULL ? "no text" : text); \
            return 1;                                                            \
        }                                                                        \
    } while (0)

int main(void)
{
    const int64_t dims[2] = {2, 4};
    const float sent[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float got[8] = {0};
    float sum = 0;
    void* data = NULL;
    aclrtStream stream = NULL;
    aclDataType type = ACL_DT_UNDEFINED;
    aclTensor* tensor;
    int i;

    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtMalloc(&data, sizeof sent, ACL_MEM_MALLOC_HUGE_FIRST));
    tensor = aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, data);
    CHECK(aclGetDataType(tensor, &type));
    CHECK(aclrtMemcpyAsync(data, sizeof sent, sent, sizeof sent, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(aclrtSynchronizeStream(stream));
    CHECK(aclrtMemcpy(got, sizeof got, data, sizeof got, ACL_MEMCPY_DEVICE_TO_HOST));
    for (i = 0; i < 8; ++i) {
        sum += got[i];
    }
    printf("%g %zu %s\n", sum, aclDataTypeSize(type), aclrtGetSocName());
    ACL_APP_LOG(ACL_INFO, "not shown");
    CHECK(aclDestroyTensor(tensor));
    CHECK(aclrtFree(data));
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    return ACLNN_SUCCESS;
}
