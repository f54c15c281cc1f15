// Where the elements of a tensor are.
#pragma once

#include <cstdint>
#include <vector>

#include "../acl/objects.h"

namespace moegrad::oprun {

struct View {
    std::vector<int64_t> dims;
    std::vector<int64_t> strides;  // in elements; any sign
    uint8_t* first = nullptr;      // the element with index 0 everywhere
    int64_t element_bytes = 0;

    int64_t elements() const;
    uint64_t bytes() const { return static_cast<uint64_t>(elements() * element_bytes); }

    // Whether the elements lie one behind another in index order.
    bool contiguous() const;

    // The memory from the lowest element to the end of the highest one.
    hostacl::Extent extent(const char* name) const;
};

// The type of |tensor| must be one with a size.
View ViewOf(const aclTensor& tensor);

// Copies the elements in index order.
void Gather(const View& view, uint8_t* to);

}  // namespace moegrad::oprun
