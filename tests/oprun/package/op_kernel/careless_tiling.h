// Tiling data of Careless, shared by host and kernel.
#pragma once

#include <cstdint>

struct CarelessTiling {
    int64_t elements;
    int32_t spare;
    uint8_t flag;
};
