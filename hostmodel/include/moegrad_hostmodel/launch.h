// Launching a kernel from C++: Launch(kernel, blocks, In(x), Out(y), tiling_struct, scalar...).
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runner.h"

namespace moegrad::hostmodel {

template <typename T>
ArraySpec In(const std::vector<T>& values)
{
    ArraySpec spec;
    spec.data = const_cast<T*>(values.data());
    spec.bytes = values.size() * sizeof(T);
    return spec;
}

template <typename T>
ArraySpec Out(std::vector<T>& values)
{
    ArraySpec spec = In(values);
    spec.role = Role::kOutput;
    return spec;
}

template <typename T>
ArraySpec InOut(std::vector<T>& values)
{
    ArraySpec spec = In(values);
    spec.role = Role::kInOut;
    return spec;
}

// Workspace is not zeroed: it holds poison until the kernel writes it.
inline ArraySpec Workspace(uint64_t bytes)
{
    ArraySpec spec;
    spec.bytes = bytes;
    spec.role = Role::kWorkspace;
    spec.name = "workspace";
    return spec;
}

template <typename T>
ArraySpec ZeroedWorkspace(std::vector<T>& zeros)
{
    ArraySpec spec = In(zeros);
    spec.role = Role::kInOut;
    spec.name = "workspace";
    return spec;
}

inline ArraySpec Absent()
{
    ArraySpec spec;
    spec.role = Role::kAbsent;
    return spec;
}

// An array of |bytes| of which only the window holds data: for offsets past 2^31 elements.
template <typename T>
ArraySpec Virtual(Role role, uint64_t bytes, std::vector<T>& window, uint64_t window_offset_bytes)
{
    ArraySpec spec = In(window);
    spec.window_bytes = spec.bytes;
    spec.window_offset = window_offset_bytes;
    spec.bytes = bytes;
    spec.role = role;
    spec.is_virtual = true;
    return spec;
}

// Tiling data in global memory, for kernels that read it with GET_TILING_DATA.
template <typename S>
struct TilingArgument {
    const S* data;
};
template <typename S>
TilingArgument<S> Tiling(const S& data)
{
    return {&data};
}

// A struct as the host finds it: every byte is poison until the host assigns it.
template <typename S>
S PoisonedTiling()
{
    S data;
    std::memset(static_cast<void*>(&data), kTilingPoison, sizeof(S));
    return data;
}

// Byte offsets that |fill(S&)| leaves unassigned, found by filling over two different poisons. Fields of any size.
template <typename S, typename F>
std::vector<std::size_t> UnsetTilingBytes(F fill)
{
    uint8_t bytes[2][sizeof(S)];
    const uint8_t poisons[2] = {kTilingPoison, static_cast<uint8_t>(~kTilingPoison)};
    for (int i = 0; i < 2; ++i) {
        S data;
        std::memset(static_cast<void*>(&data), poisons[i], sizeof(S));
        fill(data);
#if defined(__GNUC__) && !defined(__clang__)
        __builtin_clear_padding(&data);
#endif
        std::memcpy(bytes[i], &data, sizeof(S));
    }
    std::vector<std::size_t> unset;
    for (std::size_t at = 0; at < sizeof(S); ++at) {
        if (bytes[0][at] == poisons[0] && bytes[1][at] == poisons[1]) {
            unset.push_back(at);
        }
    }
    return unset;
}

// An argument as the kernel's parameter type wants it.
template <typename Parameter, typename Argument>
Parameter Bind(Runner& runner, const Argument& argument)
{
    if constexpr (std::is_same_v<Argument, ArraySpec>) {
        return reinterpret_cast<Parameter>(runner.AddArray(argument));
    } else {
        return static_cast<Parameter>(argument);
    }
}

template <typename Parameter, typename S>
Parameter Bind(Runner& runner, const TilingArgument<S>& argument)
{
    ArraySpec spec;
    spec.data = const_cast<S*>(argument.data);
    spec.bytes = sizeof(S);
    spec.role = Role::kTiling;
    spec.name = "tiling";
    runner.session().tiling_type = TypeIdentity<S>();
    return reinterpret_cast<Parameter>(runner.AddArray(spec));
}

struct LaunchSettings {
    Options options;
    uint64_t tiling_key = 0;
    const char* name = "kernel";
};

template <typename... Parameters, typename... Arguments>
Report LaunchWith(const LaunchSettings& settings, void (*kernel)(Parameters...), uint32_t block_count,
                  const Arguments&... arguments)
{
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument for each kernel parameter");
    Runner runner(settings.name, block_count, settings.options);
    runner.session().tiling_key = settings.tiling_key;
    if (InMixSection(reinterpret_cast<const void*>(kernel))) {
        runner.session().kind = KernelKind::kMixVector;
    }
    // Braces keep the arguments in order.
    const std::tuple<Parameters...> bound{Bind<Parameters>(runner, arguments)...};
    return runner.Run([&] { std::apply(kernel, bound); });
}

template <typename... Parameters, typename... Arguments>
Report Launch(void (*kernel)(Parameters...), uint32_t block_count, const Arguments&... arguments)
{
    return LaunchWith({}, kernel, block_count, arguments...);
}

}  // namespace moegrad::hostmodel
