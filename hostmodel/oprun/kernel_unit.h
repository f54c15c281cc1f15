// One kernel source compiled for one combination of data types. A unit is
//
//     #include "kernel_unit.h"
//     namespace {
//     #include "../op_kernel/scaled_add.cpp"
//     }
//     MOEGRAD_REGISTER_KERNEL(ScaledAdd, scaled_add, 1)
//
// and gets what the toolkit's compiler would define, for each argument in upper case, and a name of its own:
//
//     -DDTYPE_X=half -DORIG_DTYPE_X=DT_FLOAT16 -DFORMAT_X=FORMAT_ND ... -Dscaled_add=scaled_add_1
//
// The nameless namespace keeps the classes of several units of one operator apart: their names are the same, and what
// the macros made of them differs. It does not reach an extern "C" function, hence the last macro. A header of the
// standard library that the kernel source needs beyond kernel_operator.h has to be included before the namespace.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "dtype_macros.h"
#include "kernel.h"
#include "kernel_operator.h"

namespace moegrad::oprun {

inline std::string DescribeFindings(const hostmodel::Report& report)
{
    constexpr std::size_t kShown = 5;
    const std::size_t count = report.diagnostics.size();
    std::string text = hostmodel::Text("kernel ", report.kernel, " on ", hostmodel::kChipName, ", ", report.block_count,
                                       report.block_count == 1 ? " block, " : " blocks, ", count,
                                       count == 1 ? " finding" : " findings");
    for (std::size_t i = 0; i < count && i < kShown; ++i) {
        text += "\n  " + report.diagnostics[i].AsText();
    }
    return count <= kShown ? text : hostmodel::Text(text, "\n  and ", count - kShown, " more");
}

// The modelled arrays of a launch, in the order of the kernel's parameters.
template <std::size_t count>
std::array<uint8_t*, count> BindArrays(hostmodel::Runner& runner, const KernelLaunch& launch)
{
    std::array<uint8_t*, count> addresses{};
    std::size_t next = 0;
    for (const KernelArray& array : launch.arrays) {
        hostmodel::ArraySpec spec;
        spec.name = array.name;
        spec.bytes = array.bytes;
        spec.role = !array.present ? hostmodel::Role::kAbsent
                                   : array.output ? hostmodel::Role::kOutput : hostmodel::Role::kInput;
        spec.data = array.output ? nullptr : array.data;
        addresses[next++] = runner.AddArray(spec);
    }
    addresses[next++] = runner.AddArray(hostmodel::Workspace(launch.workspace_bytes));
    hostmodel::ArraySpec tiling;
    tiling.name = "tiling";
    tiling.bytes = launch.tiling.size();
    tiling.role = hostmodel::Role::kTiling;
    tiling.data = const_cast<uint8_t*>(launch.tiling.data());
    addresses[next] = runner.AddArray(tiling);
    return addresses;
}

template <typename... Parameters, std::size_t... index>
std::string LaunchNamed(const char* name, void (*kernel)(Parameters...), const KernelLaunch& launch,
                        std::index_sequence<index...>)
{
    static_assert((std::is_pointer_v<Parameters> && ...), "a kernel of an operator takes addresses only");
    constexpr std::size_t kCount = sizeof...(Parameters);
    if (launch.arrays.size() + 2 != kCount) {
        return hostmodel::Text("kernel ", name, " has ", kCount, " parameters; the definition has ",
                               launch.arrays.size(), " tensors, which with workspace and tiling data make ",
                               launch.arrays.size() + 2);
    }
    hostmodel::Runner runner(name, launch.block_count, {});
    runner.session().tiling_key = launch.tiling_key;
    if (hostmodel::InMixSection(reinterpret_cast<const void*>(kernel))) {
        runner.session().kind = hostmodel::KernelKind::kMixVector;
    }
    const std::array<uint8_t*, kCount> addresses = BindArrays<kCount>(runner, launch);
    const hostmodel::Report report = runner.Run([&] { kernel(reinterpret_cast<Parameters>(addresses[index])...); });
    if (!report.ok()) {
        return DescribeFindings(report);
    }
    for (std::size_t i = 0; i < launch.arrays.size(); ++i) {
        const KernelArray& array = launch.arrays[i];
        if (array.present && array.output && array.bytes != 0) {
            std::memcpy(array.data, addresses[i], array.bytes);
        }
    }
    return {};
}

template <typename... Parameters>
std::string LaunchKernel(const char* name, void (*kernel)(Parameters...), const KernelLaunch& launch)
{
    return LaunchNamed(name, kernel, launch, std::index_sequence_for<Parameters...>());
}

}  // namespace moegrad::oprun

#define MOEGRAD_REGISTER_KERNEL(OpType, kernel_function, column)                                              \
    [[maybe_unused]] static const int g_moegrad_kernel_registered = ::moegrad::oprun::RegisterKernel(         \
        #OpType, column, [](const ::moegrad::oprun::KernelLaunch& launch) {                                   \
            return ::moegrad::oprun::LaunchKernel(#kernel_function, &::kernel_function, launch);              \
        });
