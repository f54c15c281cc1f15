// The shape of a tensor as its user sees it and as it lies in memory.
#pragma once

#include <initializer_list>

#include "shape.h"

namespace gert {

class StorageShape {
public:
    StorageShape() = default;
    StorageShape(std::initializer_list<int64_t> origin, std::initializer_list<int64_t> storage)
        : origin_(origin), storage_(storage)
    {
    }

    const Shape& GetOriginShape() const { return origin_; }
    const Shape& GetShape() const { return origin_; }
    const Shape& GetStorageShape() const { return storage_; }
    Shape& MutableOriginShape() { return origin_; }
    Shape& MutableStorageShape() { return storage_; }

private:
    Shape origin_;
    Shape storage_;
};

}  // namespace gert
