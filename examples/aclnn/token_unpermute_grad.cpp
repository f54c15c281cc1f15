// Three tokens, two choices each; the last two of the six permuted rows were dropped. With probabilities.
//
// On the host:
//     g++ -std=c++17 token_unpermute_grad.cpp $(moegrad hostacl --cflags --libs) -o example && ./example
// On a device, where PACKAGE is the folder op_api of the installed operator package:
//     g++ -std=c++17 token_unpermute_grad.cpp -o example -I$ASCEND_HOME_PATH/include -I$PACKAGE/include
//         -L$PACKAGE/lib -L$ASCEND_HOME_PATH/lib64 -lcust_opapi -lnnopbase -lacl_rt
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"

namespace {

// Says what went wrong, if something did.
bool Good(int status, const char* call)
{
    if (status != ACL_SUCCESS) {
        const char* const text = aclGetRecentErrMsg();
        std::fprintf(stderr, "%s gave %d: %s\n", call, status, text == nullptr ? "no message" : text);
    }
    return status == ACL_SUCCESS;
}

struct Failure {};

#define CHECK(call) (Good((call), #call) ? void() : throw Failure())
#define WARN(call) void(Good((call), #call))  // for destructors

struct Acl {
    Acl() { CHECK(aclInit(nullptr)); }
    ~Acl() { WARN(aclFinalize()); }
};

struct Device {
    Device() { CHECK(aclrtSetDevice(0)); }
    ~Device() { WARN(aclrtResetDevice(0)); }
};

struct Stream {
    Stream() { CHECK(aclrtCreateStream(&handle)); }
    ~Stream() { WARN(aclrtDestroyStream(handle)); }
    aclrtStream handle = nullptr;
};

struct Free {
    void operator()(void* memory) const { WARN(aclrtFree(memory)); }
};
using Memory = std::unique_ptr<void, Free>;

Memory Allocate(uint64_t bytes)
{
    void* memory = nullptr;
    CHECK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return Memory(memory);
}

struct Bf16 {
    Bf16(float value = 0)  // to nearest, halves to even; no NaN
    {
        uint32_t wide;
        std::memcpy(&wide, &value, sizeof wide);
        bits = static_cast<uint16_t>((wide + 0x7FFF + (wide >> 16 & 1)) >> 16);
    }
    operator float() const
    {
        const uint32_t wide = static_cast<uint32_t>(bits) << 16;
        float value;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }
    uint16_t bits;
};

// A contiguous tensor in device memory.
template <typename T>
class Tensor {
public:
    Tensor(aclDataType type, const std::vector<int64_t>& shape, const std::vector<T>& values)
        : count_(values.size()), memory_(Allocate(Bytes()))
    {
        CHECK(aclrtMemcpy(memory_.get(), Bytes(), values.data(), Bytes(), ACL_MEMCPY_HOST_TO_DEVICE));
        std::vector<int64_t> strides(shape.size(), 1);
        for (size_t i = shape.size() - 1; i > 0; --i) {
            strides[i - 1] = strides[i] * shape[i];
        }
        tensor_.reset(aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                                      shape.size(), memory_.get()));
        CHECK(tensor_ != nullptr ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM);
    }

    aclTensor* Get() const { return tensor_.get(); }

    bool Holds(const char* name, const std::vector<float>& expected) const
    {
        std::vector<T> got(count_);
        CHECK(aclrtMemcpy(got.data(), Bytes(), memory_.get(), Bytes(), ACL_MEMCPY_DEVICE_TO_HOST));
        std::printf("%s:", name);
        for (const T value : got) {
            std::printf(" %g", static_cast<double>(value));
        }
        const bool good = std::vector<float>(got.begin(), got.end()) == expected;
        std::printf(good ? "\n" : " (wrong)\n");
        return good;
    }

private:
    struct Destroy {
        void operator()(aclTensor* tensor) const { WARN(aclDestroyTensor(tensor)); }
    };

    uint64_t Bytes() const { return count_ * sizeof(T); }

    size_t count_;
    Memory memory_;  // outlives the tensor
    std::unique_ptr<aclTensor, Destroy> tensor_;
};

bool Run()
{
    const Acl acl;
    const Device device;
    const Stream stream;

    const Tensor<Bf16> permuted_tokens(ACL_BF16, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const Tensor<Bf16> grad(ACL_BF16, {3, 2}, {1, 1, 2, 2, 3, 3});  // of the unpermuted tokens
    const Tensor<int32_t> rows(ACL_INT32, {6}, {5, 0, 2, 4, 1, 3});          // of permuted_tokens, for each slot
    const Tensor<float> probs(ACL_FLOAT, {3, 2}, {1, 0.5f, 2, 1, 0.25f, 4});
    const Tensor<Bf16> permuted_tokens_grad(ACL_BF16, {4, 2}, std::vector<Bf16>(8));
    const Tensor<float> probs_grad(ACL_FLOAT, {3, 2}, std::vector<float>(6));

    const bool padded_mode = false;
    uint64_t workspace_bytes = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeTokenUnpermuteGradGetWorkspaceSize(permuted_tokens.Get(), grad.Get(), rows.Get(), probs.Get(),
                                                     padded_mode, nullptr, permuted_tokens_grad.Get(),
                                                     probs_grad.Get(), &workspace_bytes, &executor));

    const Memory workspace = workspace_bytes > 0 ? Allocate(workspace_bytes) : nullptr;
    CHECK(aclnnMoeTokenUnpermuteGrad(workspace.get(), workspace_bytes, executor, stream.handle));
    CHECK(aclrtSynchronizeStream(stream.handle));

    const bool tokens_good =
        permuted_tokens_grad.Holds("permuted_tokens_grad", {0.5f, 0.5f, 0.75f, 0.75f, 4, 4, 12, 12});
    const bool probs_good = probs_grad.Holds("probs_grad", {0, 3, 22, 0, 21, 45});
    return tokens_good && probs_good;
}

}  // namespace

int main()
{
    try {
        return Run() ? 0 : 1;
    } catch (const Failure&) {
        return 1;
    }
}
