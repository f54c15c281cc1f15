// What a tiling or inference function returns.
#pragma once

#include <cstdint>

namespace ge {

using graphStatus = uint32_t;

inline constexpr graphStatus GRAPH_SUCCESS = 0;
inline constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;

}  // namespace ge
