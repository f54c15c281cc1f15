// Two tokens, two choices each, two experts with two rows each; two slots are dropped; bias.
//
// On the host:
//     g++ -std=c++17 finalize_routing_v2_grad.cpp $(moegrad hostacl --cflags --libs) -o example && ./example
// On a device, where PACKAGE is the folder op_api of the installed operator package:
//     g++ -std=c++17 finalize_routing_v2_grad.cpp -o example -I$ASCEND_HOME_PATH/include -I$PACKAGE/include
//         -L$PACKAGE/lib -L$ASCEND_HOME_PATH/lib64 -lcust_opapi -lnnopbase -lacl_rt
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_finalize_routing_v2_grad.h"

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

    const Tensor<Bf16> grad_y(ACL_BF16, {2, 2}, {1, 2, 3, 4});
    const Tensor<int32_t> rows(ACL_INT32, {4}, {-1, 0, 3, -1});  // of expanded_x, for each slot
    const Tensor<Bf16> expanded_x(ACL_BF16, {2, 2, 2}, {10, 20, 30, 40, 50, 60, 70, 80});
    const Tensor<float> scales(ACL_FLOAT, {2, 2}, {0.5f, 0.25f, 2, 1});
    const Tensor<int32_t> experts(ACL_INT32, {2, 2}, {1, 0, 1, 1});
    const Tensor<Bf16> bias(ACL_BF16, {2, 2}, {1, 1, 2, 2});
    const Tensor<Bf16> grad_expanded_x(ACL_BF16, {2, 2, 2}, std::vector<Bf16>(8));
    const Tensor<float> grad_scales(ACL_FLOAT, {2, 2}, std::vector<float>(4));

    const int64_t drop_pad_mode = 1;
    const int64_t active_num = 0;
    const int64_t expert_num = 2;
    const int64_t expert_capacity = 2;
    uint64_t workspace_bytes = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize(
        grad_y.Get(), rows.Get(), expanded_x.Get(), scales.Get(), experts.Get(), bias.Get(), drop_pad_mode, active_num,
        expert_num, expert_capacity, grad_expanded_x.Get(), grad_scales.Get(), &workspace_bytes, &executor));

    const Memory workspace = workspace_bytes > 0 ? Allocate(workspace_bytes) : nullptr;
    CHECK(aclnnMoeFinalizeRoutingV2Grad(workspace.get(), workspace_bytes, executor, stream.handle));
    CHECK(aclrtSynchronizeStream(stream.handle));

    const bool x_good = grad_expanded_x.Holds("grad_expanded_x", {0.25f, 0.5f, 0, 0, 0, 0, 6, 8});
    const bool scales_good = grad_scales.Holds("grad_scales", {6, 53, 544, 14});
    return x_good && scales_good;
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
