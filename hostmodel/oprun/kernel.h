// Compiled kernels: one for each operator and combination of data types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace moegrad::oprun {

// A tensor as the kernel gets it: contiguous, with its place in memory. An absent one becomes a null pointer.
struct KernelArray {
    std::string name;
    void* data = nullptr;
    uint64_t bytes = 0;
    bool output = false;
    bool present = false;
};

struct KernelLaunch {
    std::vector<KernelArray> arrays;  // inputs, then outputs
    uint32_t block_count = 0;
    uint64_t tiling_key = 0;
    uint64_t workspace_bytes = 0;
    std::vector<uint8_t> tiling;
};

// Runs a kernel. The result is empty if nothing was found, else text for people; then no output was written.
using KernelLauncher = std::string (*)(const KernelLaunch& launch);

// |column| is the index in the lists of the definition. A later registration of the same one is not taken.
// The result has no meaning.
int RegisterKernel(const char* op_type, std::size_t column, KernelLauncher launcher);

// Null if there is none.
KernelLauncher FindKernel(const std::string& op_type, std::size_t column);

// Columns that have a kernel, in ascending order.
std::vector<std::size_t> KernelColumns(const std::string& op_type);

}  // namespace moegrad::oprun
