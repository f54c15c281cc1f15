// Enumerations of the Ascend C API that the host model knows.
#pragma once

#include <cstdint>

#include "pipes.h"

enum pipe_t {
    PIPE_S = 0,
    PIPE_V = 1,
    PIPE_M = 2,
    PIPE_MTE1 = 3,
    PIPE_MTE2 = 4,
    PIPE_MTE3 = 5,
    PIPE_ALL = 6,
};

enum event_t { EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace AscendC {

enum class TPosition : uint8_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM = LCM, SHM, TSCM, MAX
};
using QuePosition = TPosition;

using TEventID = int8_t;

enum class HardEvent : uint8_t {
    MTE2_V, V_MTE2, V_MTE3, MTE3_V, MTE2_MTE3, MTE3_MTE2, V_V, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S,
    // Of the cube core; known by name so that a kernel gets a readable refusal.
    MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, M_V, V_M, MAX
};

enum class RoundMode : uint8_t {
    CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD
};

enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX = 0, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class ReduceType : uint8_t { SUM = 0, MAX, MIN };
enum class PaddingMode : uint8_t { Normal = 0, Compact };
enum class CacheMode : uint8_t {
    CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4
};
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };

inline constexpr uint64_t MASK_PLACEHOLDER = 0;
inline constexpr uint32_t DEFAULT_BLK_NUM = 8;
inline constexpr uint32_t DEFAULT_BLK_STRIDE = 1;
inline constexpr uint32_t DEFAULT_REPEAT_STRIDE = 8;
inline constexpr uint32_t HALF_DEFAULT_REPEAT_STRIDE = 4;
inline constexpr uint32_t ONE_BLK_SIZE = 32;
inline constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256;
inline constexpr uint32_t DEFAULT_C0_SIZE = 32;
inline constexpr uint32_t MAX_REPEAT_TIMES = 255;

}  // namespace AscendC

namespace moegrad::hostmodel {

struct EventPipes {
    Pipe source;
    Pipe waiter;
    bool vector_core;
};

constexpr EventPipes PipesOf(AscendC::HardEvent event)
{
    using AscendC::HardEvent;
    switch (event) {
        case HardEvent::MTE2_V: return {kMte2, kV, true};
        case HardEvent::V_MTE2: return {kV, kMte2, true};
        case HardEvent::V_MTE3: return {kV, kMte3, true};
        case HardEvent::MTE3_V: return {kMte3, kV, true};
        case HardEvent::MTE2_MTE3: return {kMte2, kMte3, true};
        case HardEvent::MTE3_MTE2: return {kMte3, kMte2, true};
        case HardEvent::V_V: return {kV, kV, true};
        case HardEvent::S_V: return {kS, kV, true};
        case HardEvent::V_S: return {kV, kS, true};
        case HardEvent::S_MTE2: return {kS, kMte2, true};
        case HardEvent::MTE2_S: return {kMte2, kS, true};
        case HardEvent::S_MTE3: return {kS, kMte3, true};
        case HardEvent::MTE3_S: return {kMte3, kS, true};
        default: return {kS, kS, false};
    }
}

inline constexpr int kEventTypes = static_cast<int>(AscendC::HardEvent::MTE2_MTE1);
inline constexpr const char* kEventNames[kEventTypes] = {"MTE2_V", "V_MTE2", "V_MTE3", "MTE3_V", "MTE2_MTE3",
                                                         "MTE3_MTE2", "V_V", "S_V", "V_S", "S_MTE2",
                                                         "MTE2_S", "S_MTE3", "MTE3_S"};

}  // namespace moegrad::hostmodel
