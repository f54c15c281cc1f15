// Device keywords. Address spaces and function qualifiers mean nothing on the host, except __mix__.
#pragma once

#include <cstdint>

#define __global__
#define __aicore__
#define __vector__
#define __cube__
#define __gm__
#define __ubuf__
#define __host_aicore__

#define GM_ADDR __gm__ uint8_t*

// A mixed kernel may use hard synchronisation. The launcher knows one by the section that its code is in.
#define __mix__(cubes, vectors) __attribute__((section("moegrad_mix_kernels")))

extern "C" {
extern char __start_moegrad_mix_kernels[] __attribute__((weak, visibility("hidden")));
extern char __stop_moegrad_mix_kernels[] __attribute__((weak, visibility("hidden")));
}

namespace moegrad::hostmodel {

inline bool InMixSection(const void* function)
{
    const auto* at = static_cast<const char*>(function);
    return __start_moegrad_mix_kernels != nullptr && at >= __start_moegrad_mix_kernels &&
           at < __stop_moegrad_mix_kernels;
}

}  // namespace moegrad::hostmodel
