#include "cases.h"

namespace {

using Dims = std::vector<int64_t>;

aclTensor* Make(const Dims& view, const Dims& storage, int64_t offset = 0, const int64_t* strides = nullptr,
                void* data = nullptr, aclDataType type = ACL_FLOAT, aclFormat format = ACL_FORMAT_ND)
{
    return aclCreateTensor(view.data(), view.size(), type, strides, offset, format, storage.data(), storage.size(),
                           data);
}

Dims Taken(int64_t* values, uint64_t count)
{
    const Dims dims(values, values + count);
    delete[] values;
    return dims;
}

}  // namespace

CASE(tensors_say_what_they_are)
{
    Begin();
    void* const data = Device(96);
    const int64_t strides[] = {1, 6};
    aclTensor* const tensor = Make({3, 2}, {4, 6}, 2, strides, data, ACL_BF16);
    TRUE(tensor != nullptr && IsTensor(tensor));
    int64_t* values = nullptr;
    uint64_t count = 0;
    OK(aclGetViewShape(tensor, &values, &count));
    TRUE((Taken(values, count) == Dims{3, 2}));
    OK(aclGetViewStrides(tensor, &values, &count));
    TRUE((Taken(values, count) == Dims{1, 6}));
    OK(aclGetStorageShape(tensor, &values, &count));
    TRUE((Taken(values, count) == Dims{4, 6}));
    int64_t offset = 0;
    aclDataType type = ACL_DT_UNDEFINED;
    aclFormat format = ACL_FORMAT_UNDEFINED;
    void* address = nullptr;
    OK(aclGetViewOffset(tensor, &offset));
    OK(aclGetDataType(tensor, &type));
    OK(aclGetFormat(tensor, &format));
    OK(aclGetRawTensorAddr(tensor, &address));
    TRUE(offset == 2 && type == ACL_BF16 && format == ACL_FORMAT_ND && address == data);
    OK(aclSetRawTensorAddr(tensor, Bytes(data) + 32));
    OK(aclGetRawTensorAddr(tensor, &address));
    TRUE(address == Bytes(data) + 32);
    OK(aclDestroyTensor(tensor));
    TRUE(!IsTensor(tensor));
    OK(aclrtFree(data));
    End();
}

CASE(tensors_without_strides_are_contiguous)
{
    Begin();
    aclTensor* const tensor = Make({2, 0, 4}, {0});
    int64_t* values = nullptr;
    uint64_t count = 0;
    OK(aclGetViewStrides(tensor, &values, &count));
    TRUE((Taken(values, count) == Dims{4, 4, 1}));
    OK(aclDestroyTensor(tensor));
    aclTensor* const scalar = Make({}, {});
    OK(aclGetViewStrides(scalar, &values, &count));
    TRUE(Taken(values, count).empty());
    OK(aclDestroyTensor(scalar));
    End();
}

CASE(wrong_tensors)
{
    Begin();
    const int64_t dims[] = {2, 3};
    NO_TENSOR(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr),
              "aclCreateTensor: viewDims is null, expected 2 numbers");
    NO_TENSOR(aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 2, nullptr),
              "aclCreateTensor: storageDims is null, expected 2 numbers");
    NO_TENSOR(aclCreateTensor(dims, 26, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr),
              "aclCreateTensor: viewDims has 26 numbers, expected at most 25");
    NO_TENSOR(Make({2, -3}, {6}), "aclCreateTensor: viewDims[1] is -3, expected 0 or more");
    NO_TENSOR(Make({2, 3}, {-6}), "aclCreateTensor: storageDims[0] is -6, expected 0 or more");
    const int64_t backwards[] = {3, -1};
    NO_TENSOR(Make({2, 3}, {6}, 0, backwards), "aclCreateTensor: stride[1] is -1, expected 0 or more");
    NO_TENSOR(Make({2, 3}, {6}, -1), "aclCreateTensor: offset is -1, expected 0 or more");
    NO_TENSOR(Make({2}, {2}, 0, nullptr, nullptr, ACL_DT_UNDEFINED),
              "aclCreateTensor: dataType is -1, which is no type");
    NO_TENSOR(Make({2}, {2}, 0, nullptr, nullptr, static_cast<aclDataType>(5)),
              "aclCreateTensor: dataType is 5, which is no type");
    NO_TENSOR(Make({2}, {2}, 0, nullptr, nullptr, ACL_FLOAT, ACL_FORMAT_UNDEFINED),
              "aclCreateTensor: format is -1, which is no format");
    NO_TENSOR(Make({2}, {2}, 0, nullptr, nullptr, ACL_FLOAT, static_cast<aclFormat>(46)),
              "aclCreateTensor: format is 46, which is no format");
    void* const data = Device(64);
    NO_TENSOR(Make({2}, {2}, 0, nullptr, Bytes(data) + 4), "aclCreateTensor: tensorData is 0x*");
    OK(aclrtFree(data));
    End();
}

CASE(views_stay_in_their_storage)
{
    Begin();
    NO_TENSOR(Make({2, 3}, {5}), "aclCreateTensor: the view leaves its storage: its last element is number 5, "
                                 "storageDims have 5");
    NO_TENSOR(Make({2, 3}, {6}, 1), "aclCreateTensor: the view leaves its storage: its last element is number 6, "
                                    "storageDims have 6");
    const int64_t wide[] = {4, 1};
    NO_TENSOR(Make({2, 3}, {6}, 0, wide), "aclCreateTensor: the view leaves its storage: its last element is number 6, "
                                          "storageDims have 6");
    const int64_t huge[] = {INT64_MAX, 1};
    NO_TENSOR(Make({3, 1}, {6}, 0, huge), "aclCreateTensor: the view leaves its storage: its last element is beyond "
                                          "64 bits, storageDims have 6");
    NO_TENSOR(Make({1}, {INT64_MAX, 2}), "aclCreateTensor: storageDims have more elements than 64 bits count");
    NO_TENSOR(Make({INT64_MAX, 2}, {1}), "aclCreateTensor: viewDims have more elements than 64 bits count");
    const int64_t repeated[] = {0, 1};
    aclTensor* const broadcast = Make({9, 6}, {6}, 0, repeated);
    TRUE(broadcast != nullptr);
    OK(aclDestroyTensor(broadcast));
    aclTensor* const empty = Make({0, 9}, {1}, 5);
    TRUE(empty != nullptr);
    OK(aclDestroyTensor(empty));
    End();
}

CASE(dead_tensors)
{
    Begin();
    aclTensor* const tensor = Make({2}, {2});
    int64_t offset = 0;
    OK(aclDestroyTensor(nullptr));
    REFUSED(aclGetViewOffset(tensor, nullptr), ACLNN_ERR_PARAM_NULLPTR, "aclGetViewOffset: offset is null");
    uint64_t count = 0;
    REFUSED(aclGetViewShape(tensor, nullptr, &count), ACLNN_ERR_PARAM_NULLPTR, "aclGetViewShape: viewDims is null");
    OK(aclDestroyTensor(tensor));
    REFUSED(aclDestroyTensor(tensor), ACLNN_ERR_PARAM_INVALID, "aclDestroyTensor: tensor is a destroyed tensor");
    REFUSED(aclGetViewOffset(tensor, &offset), ACLNN_ERR_PARAM_INVALID,
            "aclGetViewOffset: tensor is a destroyed tensor");
    REFUSED(aclSetRawTensorAddr(tensor, nullptr), ACLNN_ERR_PARAM_INVALID,
            "aclSetRawTensorAddr: tensor is a destroyed tensor");
    REFUSED(aclDestroyTensor(reinterpret_cast<aclTensor*>(&offset)), ACLNN_ERR_PARAM_INVALID,
            "aclDestroyTensor: tensor is no tensor of this process: *");
    End();
}

CASE(raw_addresses_are_aligned)
{
    Begin();
    aclTensor* const tensor = Make({2}, {2});
    REFUSED(aclSetRawTensorAddr(tensor, reinterpret_cast<void*>(uint64_t{0x1010})), ACLNN_ERR_PARAM_INVALID,
            "aclSetRawTensorAddr: addr is 0x1010, expected a multiple of 32 bytes");
    OK(aclDestroyTensor(tensor));
    End();
}

CASE(int_arrays)
{
    Begin();
    const int64_t values[] = {4, -5};
    aclIntArray* const array = aclCreateIntArray(values, 2);
    TRUE(IsIntArray(array) && array->values == Dims({4, -5}));
    uint64_t size = 0;
    OK(aclGetIntArraySize(array, &size));
    TRUE(size == 2);
    REFUSED(aclGetIntArraySize(array, nullptr), ACLNN_ERR_PARAM_NULLPTR, "aclGetIntArraySize: size is null");
    OK(aclDestroyIntArray(nullptr));
    OK(aclDestroyIntArray(array));
    REFUSED(aclDestroyIntArray(array), ACLNN_ERR_PARAM_INVALID, "aclDestroyIntArray: array is a destroyed int array");
    TRUE(!IsIntArray(array));
    NO_TENSOR(aclCreateIntArray(nullptr, 2), "aclCreateIntArray: value is null, expected 2 numbers");
    OK(aclDestroyIntArray(aclCreateIntArray(nullptr, 0)));
    End();
}
