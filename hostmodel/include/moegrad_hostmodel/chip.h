// The chip a kernel is compiled for. Choose it with -DMOEGRAD_CHIP=<name>; the default is ascend910b.
#pragma once

#include <cstdint>

#ifndef MOEGRAD_CHIP
#define MOEGRAD_CHIP ascend910b
#endif

// For sources that hold device-only host code as well, such as a launch with <<<>>>.
#ifndef MOEGRAD_HOST_MODEL
#define MOEGRAD_HOST_MODEL 1
#endif

// Sources for CPU debugging leave the same code out under these names.
#ifndef ASCENDC_CPU_DEBUG
#define ASCENDC_CPU_DEBUG 1
#endif
#ifndef __CCE_KT_TEST__
#define __CCE_KT_TEST__ 1
#endif

#define MGH_PASTE_(a, b) a##b
#define MGH_PASTE(a, b) MGH_PASTE_(a, b)
#define MGH_TEXT_(a) #a
#define MGH_TEXT(a) MGH_TEXT_(a)

// Each known name maps to <architecture><vector cores>; an unknown name pastes to an undefined token, that is 0.
#define MGH_CHIP_ascend910b 2201048
#define MGH_CHIP_ascend910b1 2201048
#define MGH_CHIP_ascend910b2 2201048
#define MGH_CHIP_ascend910b3 2201040
#define MGH_CHIP_ascend910b4 2201040
#define MGH_CHIP_ascend910_93 2201048
#define MGH_CHIP_ascend950 3510064
#define MGH_CHIP_ascend950pr_957b 3510056
#define MGH_CHIP_ascend950pr_958x 3510064

#define MGH_CHIP_CODE MGH_PASTE(MGH_CHIP_, MOEGRAD_CHIP)

#if MGH_CHIP_CODE == 0
#error "unknown MOEGRAD_CHIP; known: ascend910b, ascend910b1..4, ascend910_93, ascend950, ascend950pr_957b/958x"
#endif

#ifndef __NPU_ARCH__
#if MGH_CHIP_CODE / 1000 == 2201
#define __NPU_ARCH__ 2201
#else
#define __NPU_ARCH__ 3510
#endif
#endif

namespace moegrad::hostmodel {

inline constexpr const char* kChipName = MGH_TEXT(MOEGRAD_CHIP);
inline constexpr int kArch = __NPU_ARCH__;
inline constexpr bool kIs3510 = kArch == 3510;
inline constexpr uint32_t kVectorCores = MGH_CHIP_CODE % 1000;

// Unified Buffer bytes as the host query returns them.
inline constexpr uint32_t kUbBytes = kIs3510 ? 253952 : 196352;
// The budget without the 8 KiB that a few APIs of architecture 2201 reserve at offset 184 KiB.
inline constexpr uint32_t kStrictUbBytes = kIs3510 ? 253952 : 188160;

inline constexpr uint32_t kBlockBytes = 32;
inline constexpr uint32_t kRepeatBytes = 256;
inline constexpr uint32_t kCacheLineBytes = 64;

}  // namespace moegrad::hostmodel
