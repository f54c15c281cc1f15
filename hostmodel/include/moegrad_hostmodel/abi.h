// The C interface of a compiled kernel, for ctypes and other foreign callers.
//
//     MOEGRAD_HOSTMODEL_KERNEL(my_kernel)                 the kernel `my_kernel`, exported as moegrad_launch_my_kernel
//     MOEGRAD_HOSTMODEL_KERNEL(my_kernel, MyTilingData)   and moegrad_tiling_bytes_my_kernel() == sizeof(MyTilingData)
//
//     int32_t moegrad_launch_my_kernel(const MoegradLaunch* launch, char** json);
//     void    moegrad_hostmodel_free(char* json);
//     const char* moegrad_hostmodel_describe(void);       JSON: ABI version, chip, architecture, UB bytes, cores
//
// Pointer parameters of the kernel take launch->arrays in order; then, if any are left, the workspace, then the tiling
// data. Parameters by value (structs, scalars) are read from the tiling bytes one after another, each at its alignment.
// The result is the status: 0 clean, 1 findings, 2 the launch itself was wrong. *json is text to be freed, never null.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch.h"

extern "C" {

enum MoegradRole : uint32_t {
    MOEGRAD_INPUT = 0,
    MOEGRAD_OUTPUT = 1,
    MOEGRAD_INOUT = 2,
    MOEGRAD_WORKSPACE = 3,
    MOEGRAD_TILING = 4,
    MOEGRAD_ABSENT = 5,  // an optional input that is not there: the kernel gets a null pointer
};

enum MoegradArrayFlag : uint32_t {
    MOEGRAD_VIRTUAL = 1,  // `bytes` of address space; `data` covers [window_offset, window_offset + window_bytes)
    MOEGRAD_PARTIAL = 2,  // an output of which bytes may stay unwritten
};

enum MoegradSwitch : uint32_t {
    MOEGRAD_SATURATE = 1,
    MOEGRAD_NO_AUTO_SYNC = 2,
    MOEGRAD_STRICT_UB = 4,
    MOEGRAD_FUSED_MAC = 8,
    MOEGRAD_MIX_KERNEL = 16,  // as if the kernel were declared __mix__(0, 1)
};

struct MoegradArray {
    void* data;
    uint64_t bytes;
    uint32_t role;
    uint32_t flags;
    uint64_t window_offset;
    uint64_t window_bytes;
    const char* name;  // for messages; may be null
};

struct MoegradLaunch {
    uint32_t struct_bytes;  // sizeof(MoegradLaunch), so that a caller of another version is noticed
    uint32_t block_count;
    const MoegradArray* arrays;
    uint32_t array_count;
    uint32_t switches;
    uint64_t workspace_bytes;
    const void* tiling;
    uint64_t tiling_bytes;
    uint64_t tiling_key;
    uint64_t seed;
    uint64_t max_diagnostics;  // 0: the default
};

}  // extern "C"

namespace moegrad::hostmodel {

inline constexpr uint32_t kAbiVersion = 1;

// Hands out arrays, workspace, tiling and values to the kernel's parameters, in order.
class ArgumentReader {
public:
    ArgumentReader(Runner& runner, const MoegradLaunch& launch, std::size_t pointers)
        : runner_(runner), launch_(launch), spare_(pointers > launch.array_count ? pointers - launch.array_count : 0)
    {
        complete_ = pointers >= launch.array_count && spare_ <= 2;
    }

    template <typename P>
    P Next()
    {
        if constexpr (std::is_pointer_v<P>) {
            return reinterpret_cast<P>(NextArray());
        } else {
            P value{};
            at_ = (at_ + alignof(P) - 1) / alignof(P) * alignof(P);
            if (at_ + sizeof(P) > launch_.tiling_bytes) {
                complete_ = false;
                return value;
            }
            std::memcpy(static_cast<void*>(&value), static_cast<const uint8_t*>(launch_.tiling) + at_, sizeof(P));
            CheckUnset(value);
            at_ += sizeof(P);
            return value;
        }
    }

    bool complete() const { return complete_; }

private:
    template <typename P>
    void CheckUnset(const P& value)
    {
        if constexpr (std::is_class_v<P>) {
            const int64_t unset = FirstUnsetWord(value);
            if (unset >= 0) {
                runner_.session().diagnostics.Report("tiling-unset-field", runner_.KernelSite(), 0,
                                                     Text("the field at byte ", unset, " was never assigned"));
            }
        }
    }

    uint8_t* NextArray()
    {
        if (next_ < launch_.array_count) {
            return runner_.AddArray(FromC(launch_.arrays[next_++]));
        }
        const bool only_tiling = spare_ == 1 && launch_.tiling_bytes != 0 && launch_.workspace_bytes == 0;
        if (!workspace_given_ && !only_tiling) {
            workspace_given_ = true;
            return runner_.AddArray(Workspace(launch_.workspace_bytes));
        }
        ArraySpec spec;
        spec.data = const_cast<void*>(launch_.tiling);
        spec.bytes = launch_.tiling_bytes;
        spec.role = Role::kTiling;
        spec.name = "tiling";
        return runner_.AddArray(spec);
    }

    static ArraySpec FromC(const MoegradArray& array)
    {
        ArraySpec spec;
        spec.data = array.data;
        spec.bytes = array.bytes;
        spec.role = static_cast<Role>(array.role);
        spec.is_virtual = (array.flags & MOEGRAD_VIRTUAL) != 0;
        spec.partial = (array.flags & MOEGRAD_PARTIAL) != 0;
        spec.window_offset = array.window_offset;
        spec.window_bytes = array.window_bytes;
        spec.name = array.name == nullptr ? "" : array.name;
        return spec;
    }

    Runner& runner_;
    const MoegradLaunch& launch_;
    std::size_t spare_;
    std::size_t at_ = 0;
    uint32_t next_ = 0;
    bool workspace_given_ = false;
    bool complete_ = true;
};

inline char* CopyText(const std::string& text)
{
    auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

inline Options OptionsOf(const MoegradLaunch& launch)
{
    Options options;
    options.seed = launch.seed;
    options.saturate = (launch.switches & MOEGRAD_SATURATE) != 0;
    options.auto_sync = (launch.switches & MOEGRAD_NO_AUTO_SYNC) == 0;
    options.strict_ub = (launch.switches & MOEGRAD_STRICT_UB) != 0;
    options.fused_mac = (launch.switches & MOEGRAD_FUSED_MAC) != 0;
    if (launch.max_diagnostics != 0) {
        options.max_diagnostics = launch.max_diagnostics;
    }
    return options;
}

inline int32_t RefuseLaunch(Runner& runner, const std::string& why, char** json)
{
    runner.session().diagnostics.Report("kernel-arguments", runner.KernelSite(), 0, why);
    Report report = runner.MakeReport();
    report.status = kBadLaunch;
    *json = CopyText(report.AsJson());
    return report.status;
}

template <typename... Parameters>
int32_t LaunchFromC(const char* name, void (*kernel)(Parameters...), const MoegradLaunch* launch, char** json)
{
    constexpr std::size_t kPointers = (std::size_t{0} + ... + (std::is_pointer_v<Parameters> ? 1 : 0));
    if (launch == nullptr || launch->struct_bytes != sizeof(MoegradLaunch) || launch->block_count == 0 ||
        launch->block_count > 65535) {
        Runner refused(name, 0, {});
        const char* why = "the launch struct is of another version, or block_count is not in [1, 65535]";
        return RefuseLaunch(refused, why, json);
    }
    Runner runner(name, launch->block_count, OptionsOf(*launch));
    Session& session = runner.session();
    session.tiling_key = launch->tiling_key;
    const bool mix = (launch->switches & MOEGRAD_MIX_KERNEL) != 0;
    if (mix || InMixSection(reinterpret_cast<const void*>(kernel))) {
        session.kind = KernelKind::kMixVector;
    }
    ArgumentReader reader(runner, *launch, kPointers);
    const std::tuple<Parameters...> bound{reader.Next<Parameters>()...};
    if (!reader.complete()) {
        return RefuseLaunch(runner,
                            Text("the kernel has ", kPointers, " pointer parameters and ",
                                 sizeof...(Parameters) - kPointers, " by value; got ", launch->array_count,
                                 " arrays and ", launch->tiling_bytes, " tiling bytes"),
                            json);
    }
    const Report report = runner.Run([&] { std::apply(kernel, bound); });
    *json = CopyText(report.AsJson());
    return report.status;
}

}  // namespace moegrad::hostmodel

#define MGH_EXPORT extern "C" __attribute__((used, visibility("default")))

MGH_EXPORT inline void moegrad_hostmodel_free(char* json) { std::free(json); }

// Of internal linkage: libraries for different chips in one process must not share this text.
[[maybe_unused]] static const char* MoegradDescription()
{
    using namespace moegrad::hostmodel;
    static const std::string text =
        Text("{\"abi\": ", kAbiVersion, ", \"chip\": \"", kChipName, "\", \"arch\": ", kArch, ", \"ub_bytes\": ",
             kUbBytes, ", \"strict_ub_bytes\": ", kStrictUbBytes, ", \"vector_cores\": ", kVectorCores, "}");
    return text.c_str();
}

MGH_EXPORT inline const char* moegrad_hostmodel_describe() { return MoegradDescription(); }

template <typename... Structs>
constexpr uint64_t MoegradTilingBytes()
{
    return (uint64_t{0} + ... + sizeof(Structs));
}

// The export name and the function, for kernels that are template instances.
#define MOEGRAD_HOSTMODEL_KERNEL_AS(name, function, ...)                                               \
    MGH_EXPORT int32_t moegrad_launch_##name(const MoegradLaunch* launch, char** json)                  \
    {                                                                                                   \
        return ::moegrad::hostmodel::LaunchFromC(#name, function, launch, json);                        \
    }                                                                                                   \
    MGH_EXPORT uint64_t moegrad_tiling_bytes_##name() { return MoegradTilingBytes<__VA_ARGS__>(); }

#define MOEGRAD_HOSTMODEL_KERNEL(name, ...) MOEGRAD_HOSTMODEL_KERNEL_AS(name, name, ##__VA_ARGS__)
