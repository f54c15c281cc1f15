// Running a tiling function.
#pragma once

#include <cstdint>
#include <vector>

#include "register/op_def_registry.h"

namespace moegrad::oprun {

struct TilingResult {
    uint64_t key = 0;
    uint32_t block_count = 0;
    uint64_t workspace_bytes = 0;
    std::vector<uint8_t> data;
};

// Throws a Refusal if the function fails, leaves something out, or does what a device would not notice.
TilingResult RunTiling(const ops::OpDef& op, const gert::ComputeNodeInfo& node);

}  // namespace moegrad::oprun
