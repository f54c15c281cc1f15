// What the parts of the host ACL share: its objects, and the few functions that the operator runner builds on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

struct aclTensor {
    std::vector<int64_t> view_dims;
    std::vector<int64_t> strides;  // of the view, in elements
    int64_t offset = 0;            // of the view's first element, in elements from `data`
    std::vector<int64_t> storage_dims;
    aclDataType dtype = ACL_DT_UNDEFINED;
    aclFormat format = ACL_FORMAT_UNDEFINED;
    void* data = nullptr;  // device memory
};

struct aclIntArray {
    std::vector<int64_t> values;
};

namespace moegrad::hostacl {

// Device memory that an executor reads or writes when it runs; it has to be alive until then.
struct Extent {
    std::string name;  // of the argument, for messages
    const void* address;
    uint64_t bytes;
    const aclTensor* tensor = nullptr;  // that describes it, if any; it has to stay as it is until the second phase
};

// Sets what aclGetRecentErrMsg of this thread returns next.
void SetRecentError(const std::string& text);

// SetRecentError(text); returns `status`.
aclnnStatus Fail(aclnnStatus status, const std::string& text);

// What an executor does once its stream gets to it. `workspace` has the size that the first phase named. The lock of
// the host ACL is held meanwhile, so work calls what is here and the public functions on its own thread only.
using Work = std::function<aclnnStatus(void* workspace)>;

// An executor of operator `api`, which one call of RunExecutor uses up unless the client made it repeatable. Null, with
// the error set, if the host ACL is not initialised or the thread has no device.
aclOpExecutor* NewExecutor(const std::string& api, uint64_t workspace_bytes, std::vector<Extent> extents, Work work);

// The second phase of every operator: checks executor, workspace, stream and extents, then queues the work.
aclnnStatus RunExecutor(const std::string& api, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                        aclrtStream stream);

// Whether [address, address + bytes) is inside one live allocation of device memory; else why not, in `why`.
bool IsDeviceMemory(const void* address, uint64_t bytes, std::string* why);

// Whether these were created and not destroyed since; reads nothing of them.
bool IsTensor(const aclTensor* tensor);
bool IsIntArray(const aclIntArray* array);

// Names every allocation with bytes written around it, or in it after it was freed, once each; empty if all is well.
std::string CheckMemory();

}  // namespace moegrad::hostacl
