// Small helpers that device code finds next to the API: scalar min and max, rounding up, printing, assertions.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <stdio.h>
#include <type_traits>

#include "sync.h"

namespace AscendC {

namespace Std {

template <typename T>
constexpr T min(const T a, const T b)
{
    return a < b ? a : b;
}
template <typename T>
constexpr T max(const T a, const T b)
{
    return a > b ? a : b;
}

}  // namespace Std

// Not templates, so that a kernel's own templates of the same names stay unambiguous.
constexpr uint32_t AlignUp(uint32_t value, uint32_t step) { return (value + step - 1) / step * step; }
constexpr uint32_t DivCeil(uint32_t value, uint32_t step) { return (value + step - 1) / step; }
constexpr int32_t CeilDivision(int32_t value, int32_t step) { return (value + step - 1) / step; }

template <typename A, typename B>
struct IsSameType {
    static constexpr bool value = std::is_same_v<A, B>;
};

// The part of the workspace that belongs to the kernel; here it is all of it.
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }
inline void SetSysWorkspace(GM_ADDR) {}

template <typename... Values>
void PRINTF(const char* format, Values... values)
{
    if constexpr (sizeof...(Values) == 0) {
        std::fputs(format, stdout);
    } else {
        std::printf(format, values...);
    }
}

using ::printf;

template <typename Tensor>
void DumpTensor(const Tensor&, uint32_t, uint32_t)
{
}

inline int64_t GetSystemCycle() { return 0; }
inline uint32_t GetUBSizeInBytes() { return moegrad::hostmodel::kUbBytes; }

template <typename T>
constexpr uint32_t GetDataBlockSizeInBytes()
{
    return moegrad::hostmodel::kBlockBytes;
}

}  // namespace AscendC

namespace moegrad::hostmodel {

[[noreturn, gnu::cold]] inline void FailAssert(const char* condition, const Where& where)
{
    Core& core = Self();
    core.Report("kernel-assert", {"ASSERT", where}, condition);
    core.Abort();
}

}  // namespace moegrad::hostmodel

#define ASSERT(...)                                                                          \
    do {                                                                                     \
        if (!(__VA_ARGS__)) {                                                                \
            ::moegrad::hostmodel::FailAssert(#__VA_ARGS__, {__FILE__, __LINE__});            \
        }                                                                                    \
    } while (false)

#define ASCENDC_ASSERT(condition, action) \
    do {                                  \
        if (!(condition)) {               \
            action;                       \
        }                                 \
    } while (false)
