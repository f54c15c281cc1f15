// Tiling data of ScaledAdd, shared by host and kernel.
#pragma once

#include <cstdint>

struct ScaledAddTiling {
    int64_t elements;
    int64_t perCore;
    int64_t scale;
    int64_t shift;
    uint8_t negate;
};
