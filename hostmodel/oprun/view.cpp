#include "view.h"

#include <cstddef>
#include <cstring>

#include "graph/types.h"

namespace moegrad::oprun {

int64_t View::elements() const
{
    int64_t count = 1;
    for (const int64_t dim : dims) {
        count *= dim;
    }
    return count;
}

bool View::contiguous() const
{
    int64_t expected = 1;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
        if (dims[axis] == 0) {
            return true;
        }
        if (dims[axis] != 1 && strides[axis] != expected) {
            return elements() == 0;
        }
        expected *= dims[axis];
    }
    return true;
}

hostacl::Extent View::extent(const char* name) const
{
    if (elements() == 0) {
        return {name, nullptr, 0};
    }
    int64_t lowest = 0;
    int64_t highest = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        const int64_t reach = (dims[axis] - 1) * strides[axis];
        (reach < 0 ? lowest : highest) += reach;
    }
    const auto length = static_cast<uint64_t>((highest - lowest + 1) * element_bytes);
    return {name, first == nullptr ? nullptr : first + lowest * element_bytes, length};
}

View ViewOf(const aclTensor& tensor)
{
    View view;
    view.dims = tensor.view_dims;
    view.strides = tensor.strides;
    view.element_bytes = ge::GetSizeByDataType(static_cast<ge::DataType>(tensor.dtype));
    view.first = static_cast<uint8_t*>(tensor.data);
    if (view.first != nullptr) {
        view.first += tensor.offset * view.element_bytes;
    }
    return view;
}

void Gather(const View& view, uint8_t* to)
{
    if (view.elements() == 0) {
        return;
    }
    // The innermost axes that lie together are one copy.
    std::size_t outer = view.dims.size();
    int64_t run = 1;
    while (outer > 0 && (view.dims[outer - 1] == 1 || view.strides[outer - 1] == run)) {
        run *= view.dims[--outer];
    }
    const auto run_bytes = static_cast<std::size_t>(run * view.element_bytes);
    std::vector<int64_t> index(outer, 0);
    int64_t offset = 0;
    for (;;) {
        std::memcpy(to, view.first + offset * view.element_bytes, run_bytes);
        to += run_bytes;
        std::size_t axis = outer;
        while (axis > 0 && index[axis - 1] + 1 == view.dims[axis - 1]) {
            --axis;
            offset -= index[axis] * view.strides[axis];
            index[axis] = 0;
        }
        if (axis == 0) {
            return;
        }
        ++index[axis - 1];
        offset += view.strides[axis - 1];
    }
}

}  // namespace moegrad::oprun
