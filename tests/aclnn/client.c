/* A client in C: the worked example of padded_mode, twice on the same tensors, the second time without probs. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"

#define CHECK(call)                                                                              \
    do {                                                                                         \
        const int code = (call);                                                                 \
        if (code != ACL_SUCCESS) {                                                               \
            const char* const text = aclGetRecentErrMsg();                                       \
            fprintf(stderr, "%s gave %d: %s\n", #call, code, text == NULL ? "no message" : text); \
            return 1;                                                                            \
        }                                                                                        \
    } while (0)

static int Make(aclTensor** tensor, void** memory, aclDataType type, int64_t rows, int64_t columns, const void* values)
{
    const int64_t shape[2] = {rows, columns};
    const int64_t strides[2] = {columns, 1};
    const uint64_t rank = columns == 0 ? 1 : 2;
    const size_t bytes = 4 * (size_t)(rows * (columns == 0 ? 1 : columns));
    CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(*memory, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    *tensor = aclCreateTensor(shape, rank, type, rank == 1 ? NULL : strides, 0, ACL_FORMAT_ND, shape, rank, *memory);
    CHECK(*tensor == NULL);
    return 0;
}

static int Print(const char* name, const void* memory, int count)
{
    float values[8];
    int i;
    CHECK(aclrtMemcpy(values, sizeof values, memory, sizeof *values * (size_t)count, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("%s:", name);
    for (i = 0; i < count; ++i) {
        printf(" %g", values[i]);
    }
    puts("");
    return 0;
}

enum { TOKENS, GRAD, INDICES, PROBS, TOKENS_GRAD, PROBS_GRAD, TENSORS };

int main(void)
{
    const float tokens[8] = {1, 1, 2, 2, 3, 3, 4, 4};
    const float grad[4] = {1, 2, 3, 4};
    const int32_t indices[4] = {1, 0, 0, -1};
    const float probs[4] = {0.5f, 2, 1, 7};
    const float nothing[8] = {0};
    const int64_t shape[2] = {2, 2};
    aclTensor* tensor[TENSORS] = {NULL};
    void* memory[TENSORS] = {NULL};
    aclrtStream stream = NULL;
    int call;
    int i;

    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    CHECK(Make(&tensor[TOKENS], &memory[TOKENS], ACL_FLOAT, 4, 2, tokens));
    CHECK(Make(&tensor[GRAD], &memory[GRAD], ACL_FLOAT, 2, 2, grad));
    CHECK(Make(&tensor[INDICES], &memory[INDICES], ACL_INT32, 4, 0, indices));
    CHECK(Make(&tensor[PROBS], &memory[PROBS], ACL_FLOAT, 2, 2, probs));
    CHECK(Make(&tensor[TOKENS_GRAD], &memory[TOKENS_GRAD], ACL_FLOAT, 4, 2, nothing));
    CHECK(Make(&tensor[PROBS_GRAD], &memory[PROBS_GRAD], ACL_FLOAT, 2, 2, nothing));
    for (call = 0; call < 2; ++call) {
        const bool weighted = call == 0;
        aclIntArray* const restore_shape = aclCreateIntArray(shape, 2);
        uint64_t workspace_bytes = 0;
        void* workspace = NULL;
        aclOpExecutor* executor = NULL;
        CHECK(aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
            tensor[TOKENS], tensor[GRAD], tensor[INDICES], weighted ? tensor[PROBS] : NULL, true, restore_shape,
            tensor[TOKENS_GRAD], weighted ? tensor[PROBS_GRAD] : NULL, &workspace_bytes, &executor));
        if (workspace_bytes > 0) {
            CHECK(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
        }
        CHECK(aclnnMoeTokenUnpermuteGrad(workspace, workspace_bytes, executor, stream));
        CHECK(aclrtSynchronizeStream(stream));
        CHECK(Print("permuted_tokens_grad", memory[TOKENS_GRAD], 8));
        if (weighted) {
            CHECK(Print("probs_grad", memory[PROBS_GRAD], 4));
        }
        if (workspace != NULL) {
            CHECK(aclrtFree(workspace));
        }
        CHECK(aclDestroyIntArray(restore_shape));
    }
    for (i = 0; i < TENSORS; ++i) {
        CHECK(aclDestroyTensor(tensor[i]));
        CHECK(aclrtFree(memory[i]));
    }
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    return 0;
}
