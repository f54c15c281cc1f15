// Tensors and integer arrays.
#include <algorithm>

#include "aclnn/aclnn_base.h"
#include "call.h"

namespace moegrad::hostacl {

namespace {

constexpr uint64_t kDataAlignment = 32;
constexpr uint64_t kMaxDims = 25;  // of a shape in tiling functions

bool IsKnown(aclDataType type)
{
    return (type >= ACL_FLOAT && type <= ACL_UINT8) || (type >= ACL_INT16 && type <= ACL_STRING) ||
           type == ACL_COMPLEX64 || type == ACL_COMPLEX128 || type == ACL_BF16 || type == ACL_INT4 ||
           type == ACL_UINT1 || (type >= ACL_COMPLEX32 && type <= ACL_FLOAT4_E1M2);
}

bool IsKnown(aclFormat format)
{
    static const aclFormat known[] = {
        ACL_FORMAT_NCHW,      ACL_FORMAT_NHWC,        ACL_FORMAT_ND,       ACL_FORMAT_NC1HWC0,
        ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_NC1HWC0_C04, ACL_FORMAT_HWCN,     ACL_FORMAT_NDHWC,
        ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NCDHW,      ACL_FORMAT_NDC1HWC0, ACL_FRACTAL_Z_3D,
        ACL_FORMAT_NC,        ACL_FORMAT_NCL,
    };
    return std::find(std::begin(known), std::end(known), format) != std::end(known);
}

// Copies `count` dimensions or strides, none of them negative.
int Take(const Call& call, const int64_t* values, uint64_t count, const char* argument, std::vector<int64_t>* taken)
{
    if (values == nullptr && count != 0) {
        return call.Fail(ACLNN_ERR_PARAM_NULLPTR, argument, " is null, expected ", count, " numbers");
    }
    if (count > kMaxDims) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, argument, " has ", count, " numbers, expected at most ", kMaxDims);
    }
    taken->assign(values, values + count);
    for (size_t i = 0; i < taken->size(); ++i) {
        if ((*taken)[i] < 0) {
            return call.Fail(ACLNN_ERR_PARAM_INVALID, argument, "[", i, "] is ", (*taken)[i], ", expected 0 or more");
        }
    }
    return ACLNN_SUCCESS;
}

// Numbers of elements and their products, none of them negative; false once they do not fit.
bool Multiply(int64_t factor, int64_t* product) { return !__builtin_mul_overflow(*product, factor, product); }

bool CountElements(const std::vector<int64_t>& dims, int64_t* elements)
{
    *elements = 1;
    return std::all_of(dims.begin(), dims.end(), [&](int64_t dim) { return Multiply(dim, elements); });
}

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& dims)
{
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
    }
    return strides;
}

// The element of the storage that comes last in the view; -1 if it does not fit.
int64_t LastElement(const aclTensor& tensor)
{
    int64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.view_dims.size(); ++i) {
        int64_t step = tensor.strides[i];
        if (!Multiply(tensor.view_dims[i] - 1, &step) || __builtin_add_overflow(last, step, &last)) {
            return -1;
        }
    }
    return last;
}

// The storage shape is what is there in memory, so the view has to be inside.
int CheckView(const Call& call, const aclTensor& tensor)
{
    int64_t elements;
    int64_t stored;
    if (!CountElements(tensor.storage_dims, &stored)) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "storageDims have more elements than 64 bits count");
    }
    if (!CountElements(tensor.view_dims, &elements)) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "viewDims have more elements than 64 bits count");
    }
    const int64_t last = LastElement(tensor);
    if (elements != 0 && (last < 0 || last >= stored)) {
        return call.Fail(ACLNN_ERR_PARAM_INVALID, "the view leaves its storage: its last element is ",
                         last < 0 ? "beyond 64 bits" : Text("number ", last), ", storageDims have ", stored);
    }
    return ACLNN_SUCCESS;
}

int CheckData(const Call& call, const void* data, const char* argument)
{
    return reinterpret_cast<uint64_t>(data) % kDataAlignment == 0
               ? ACLNN_SUCCESS
               : call.Fail(ACLNN_ERR_PARAM_INVALID, argument, " is ", data, ", expected a multiple of 32 bytes");
}

template <typename T>
int NeedAlive(const Call& call, const Pool<T>& pool, const T* object, const char* argument)
{
    if (const int error = call.NeedInit()) {
        return error;
    }
    if (object == nullptr) {
        return call.Fail(ACLNN_ERR_PARAM_NULLPTR, argument, " is null");
    }
    return pool.Holds(object) ? ACLNN_SUCCESS
                              : call.Fail(ACLNN_ERR_PARAM_INVALID, argument, " ", pool.Describe(object));
}

template <typename T>
aclnnStatus Destroy(const Call& call, Pool<T>* pool, const T* object, const char* argument)
{
    if (object == nullptr) {
        return ACLNN_SUCCESS;
    }
    if (const int error = NeedAlive(call, *pool, object, argument)) {
        return error;
    }
    pool->Remove(object);
    return ACLNN_SUCCESS;
}

int NeedOutput(const Call& call, const void* output, const char* argument)
{
    return output != nullptr ? ACLNN_SUCCESS : call.Fail(ACLNN_ERR_PARAM_NULLPTR, argument, " is null");
}

// One value of a tensor.
template <typename V>
aclnnStatus Get(const Call& call, const aclTensor* tensor, V aclTensor::*member, V* output, const char* argument)
{
    if (const int error = NeedAlive(call, Now().tensors, tensor, "tensor")) {
        return error;
    }
    if (const int error = NeedOutput(call, output, argument)) {
        return error;
    }
    *output = tensor->*member;
    return ACLNN_SUCCESS;
}

// Numbers of a tensor, in an array that the caller deletes.
aclnnStatus GetArray(const Call& call, const aclTensor* tensor, std::vector<int64_t> aclTensor::*member,
                     int64_t** values, const char* values_name, uint64_t* count, const char* count_name)
{
    if (const int error = NeedAlive(call, Now().tensors, tensor, "tensor")) {
        return error;
    }
    if (const int error = NeedOutput(call, values, values_name)) {
        return error;
    }
    if (const int error = NeedOutput(call, count, count_name)) {
        return error;
    }
    const std::vector<int64_t>& numbers = tensor->*member;
    *values = new int64_t[numbers.size()];
    std::copy(numbers.begin(), numbers.end(), *values);
    *count = numbers.size();
    return ACLNN_SUCCESS;
}

}  // namespace

bool IsTensor(const aclTensor* tensor)
{
    const std::lock_guard<std::recursive_mutex> lock(Mutex());
    return Now().tensors.Holds(tensor);
}

bool IsIntArray(const aclIntArray* array)
{
    const std::lock_guard<std::recursive_mutex> lock(Mutex());
    return Now().int_arrays.Holds(array);
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData)
{
    const Call call("aclCreateTensor");
    auto tensor = std::make_unique<aclTensor>();
    if (call.NeedInit() || Take(call, viewDims, viewDimsNum, "viewDims", &tensor->view_dims) ||
        Take(call, storageDims, storageDimsNum, "storageDims", &tensor->storage_dims)) {
        return nullptr;
    }
    if (stride == nullptr) {
        tensor->strides = ContiguousStrides(tensor->view_dims);
    } else if (Take(call, stride, viewDimsNum, "stride", &tensor->strides)) {
        return nullptr;
    }
    if (!IsKnown(dataType)) {
        call.Fail(ACLNN_ERR_PARAM_INVALID, "dataType is ", static_cast<int>(dataType), ", which is no type");
        return nullptr;
    }
    if (!IsKnown(format)) {
        call.Fail(ACLNN_ERR_PARAM_INVALID, "format is ", static_cast<int>(format), ", which is no format");
        return nullptr;
    }
    if (offset < 0) {
        call.Fail(ACLNN_ERR_PARAM_INVALID, "offset is ", offset, ", expected 0 or more");
        return nullptr;
    }
    tensor->offset = offset;
    tensor->dtype = dataType;
    tensor->format = format;
    tensor->data = tensorData;
    if (CheckView(call, *tensor) || CheckData(call, tensorData, "tensorData")) {
        return nullptr;
    }
    return Now().tensors.Add(std::move(tensor));
}

// Executors refer to their tensors: the second phase of an operator fails if one of them was destroyed before.
aclnnStatus aclDestroyTensor(const aclTensor* tensor)
{
    return Destroy(Call("aclDestroyTensor"), &Now().tensors, tensor, "tensor");
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum)
{
    return GetArray(Call("aclGetViewShape"), tensor, &aclTensor::view_dims, viewDims, "viewDims", viewDimsNum,
                    "viewDimsNum");
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum)
{
    return GetArray(Call("aclGetViewStrides"), tensor, &aclTensor::strides, stridesValue, "stridesValue", stridesNum,
                    "stridesNum");
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum)
{
    return GetArray(Call("aclGetStorageShape"), tensor, &aclTensor::storage_dims, storageDims, "storageDims",
                    storageDimsNum, "storageDimsNum");
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset)
{
    return Get(Call("aclGetViewOffset"), tensor, &aclTensor::offset, offset, "offset");
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType)
{
    return Get(Call("aclGetDataType"), tensor, &aclTensor::dtype, dataType, "dataType");
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format)
{
    return Get(Call("aclGetFormat"), tensor, &aclTensor::format, format, "format");
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr)
{
    return Get(Call("aclGetRawTensorAddr"), tensor, &aclTensor::data, addr, "addr");
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr)
{
    const Call call("aclSetRawTensorAddr");
    if (const int error = NeedAlive<aclTensor>(call, Now().tensors, tensor, "tensor")) {
        return error;
    }
    if (const int error = CheckData(call, addr, "addr")) {
        return error;
    }
    for (const auto& [handle, executor] : Now().executors.objects()) {
        for (const Extent& extent : executor->extents) {
            if (extent.tensor == tensor) {
                return call.Fail(ACLNN_ERR_PARAM_INVALID, "tensor is ", extent.name, " of ", executor->api,
                                 ", whose second phase is still to come");
            }
        }
    }
    tensor->data = addr;
    return ACLNN_SUCCESS;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size)
{
    const Call call("aclCreateIntArray");
    if (call.NeedInit()) {
        return nullptr;
    }
    if (value == nullptr && size != 0) {
        call.Fail(ACLNN_ERR_PARAM_NULLPTR, "value is null, expected ", size, " numbers");
        return nullptr;
    }
    auto array = std::make_unique<aclIntArray>();
    array->values.assign(value, value + size);
    return Now().int_arrays.Add(std::move(array));
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size)
{
    const Call call("aclGetIntArraySize");
    if (const int error = NeedAlive(call, Now().int_arrays, array, "array")) {
        return error;
    }
    if (const int error = NeedOutput(call, size, "size")) {
        return error;
    }
    *size = array->values.size();
    return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array)
{
    return Destroy(Call("aclDestroyIntArray"), &Now().int_arrays, array, "array");
}
