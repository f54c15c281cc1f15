// Every diagnostic by name: how severe it is, which mistake of docs/hostmodel.md it belongs to, how to mend it.
#pragma once

#include <cstdint>
#include <string_view>

namespace moegrad::hostmodel {

enum class Severity : uint8_t { kWarning, kError };

struct CatalogueEntry {
    const char* name;
    int row;  // 0: beyond the twenty rows
    Severity severity;
    const char* mend;
};

inline constexpr Severity kE = Severity::kError;
inline constexpr Severity kW = Severity::kWarning;

inline constexpr CatalogueEntry kCatalogue[] = {
    {"ub-misaligned", 1, kE, "start the tensor at a multiple of 32 bytes; round row pitches up to 32 bytes"},
    {"ub-overflow", 2, kE, "shrink or split the buffers so that their 32-byte rounded sum fits the budget"},
    {"ub-out-of-bounds", 3, kE, "keep the access inside the length that InitBuffer was given"},
    {"missing-event-mte2-v", 4, kE, "EnQue/DeQue the tensor, or SetFlag<HardEvent::MTE2_V> after the load and WaitFlag before the compute"},
    {"missing-event-v-mte3", 5, kE, "EnQue/DeQue the tensor, or SetFlag<HardEvent::V_MTE3> after the compute and WaitFlag before the store"},
    {"missing-event-mte3-v", 5, kE, "FreeTensor/AllocTensor the buffer, or SetFlag<HardEvent::MTE3_V> after the store and WaitFlag before the rewrite"},
    {"missing-event-v-mte2", 5, kE, "FreeTensor/AllocTensor the buffer, or SetFlag<HardEvent::V_MTE2> after the compute and WaitFlag before the reload"},
    {"missing-event-mte2-mte3", 6, kE, "use TQueBind<VECIN, VECOUT>, or SetFlag/WaitFlag<HardEvent::MTE2_MTE3>; automatic sync does not cover it"},
    {"missing-event-mte3-mte2", 6, kE, "use TQueBind<VECIN, VECOUT>, or SetFlag/WaitFlag<HardEvent::MTE3_MTE2>; automatic sync does not cover it"},
    {"missing-event-s-v", 6, kE, "SetFlag/WaitFlag<HardEvent::S_V>, or compile with automatic sync"},
    {"missing-event-s-mte2", 6, kE, "SetFlag/WaitFlag<HardEvent::S_MTE2>, or compile with automatic sync"},
    {"missing-event-s-mte3", 6, kE, "SetFlag/WaitFlag<HardEvent::S_MTE3>, or compile with automatic sync"},
    {"missing-event-v-s", 6, kE, "SetFlag/WaitFlag<HardEvent::V_S>, or compile with automatic sync"},
    {"missing-event-mte2-s", 6, kE, "SetFlag/WaitFlag<HardEvent::MTE2_S>, or compile with automatic sync"},
    {"missing-event-mte3-s", 6, kE, "SetFlag/WaitFlag<HardEvent::MTE3_S>, or compile with automatic sync"},
    {"missing-barrier-v", 6, kE, "PipeBarrier<PIPE_V>() between the two, or compile with automatic sync"},
    {"missing-barrier-mte2", 6, kE, "PipeBarrier<PIPE_MTE2>() between two loads into the same place"},
    {"missing-barrier-mte3", 6, kE, "PipeBarrier<PIPE_MTE3>() between two stores to the same place"},
    {"ub-uninitialised-read", 7, kE, "write the bytes first (load, Duplicate) or shorten the access to what was written"},
    {"dummy-tail-read", 7, kE, "the tail of a padded load repeats the first element: shorten the access or pad with isPad = true"},
    {"gm-uninitialised-read", 7, kE, "global memory is not zeroed for you: write it before it is read"},
    {"queue-enque-twice", 8, kE, "EnQue a tensor once after AllocTensor or DeQue"},
    {"queue-deque-empty", 8, kE, "DeQue only after EnQue"},
    {"queue-free-twice", 8, kE, "FreeTensor once per AllocTensor"},
    {"queue-not-freed", 8, kE, "FreeTensor every tensor before the kernel ends"},
    {"queue-alloc-hang", 8, kE, "the device waits for ever: free a buffer first or give InitBuffer a larger num"},
    {"queue-depth-exceeded", 8, kE, "raise the queue's depth or DeQue before the next EnQue"},
    {"queue-foreign-tensor", 8, kE, "return a tensor to the queue it was allocated from"},
    {"queue-use-after-free", 8, kE, "do not use a tensor after FreeTensor"},
    {"too-many-buffers", 9, kE, "at most 8 buffers live per TPosition and 64 in all: lower num or merge queues"},
    {"event-set-twice", 10, kE, "WaitFlag between two SetFlag of one event and id"},
    {"event-wait-without-set", 10, kE, "SetFlag the same event and id first; both must match exactly"},
    {"event-id-out-of-range", 10, kE, "event ids are 0 to 7; use 0 to 5 by hand"},
    {"event-id-reserved", 10, kW, "id 6 belongs to the system and 7 to automatic sync: use 0 to 5 by hand"},
    {"event-id-clash", 10, kE, "a queue holds this id: take yours from AllocEventID"},
    {"event-id-not-allocated", 10, kE, "ReleaseEventID once for each AllocEventID"},
    {"event-left-set", 10, kE, "WaitFlag for every SetFlag, or the flag leaks into the next kernel on this core"},
    {"fetched-event-id-reused", 11, kE, "FetchEventID does not reserve: use AllocEventID for a flag that stays set"},
    {"gm-out-of-range", 12, kE, "check the index and the row length; -1 and rows past the end must be skipped"},
    {"gm-past-declared-size", 12, kW, "the access is inside the array but past the size given to SetGlobalBuffer"},
    {"gm-write-to-input", 12, kE, "an input tensor is read only"},
    {"gm-offset-overflow", 13, kE, "compute the element offset in 64 bits from the first multiplication"},
    {"tiling-struct-mismatch", 14, kE, "share one header for the tiling struct between host and kernel"},
    {"tiling-unset-field", 14, kE, "the host must assign every tiling field; none has a default"},
    {"repeat-out-of-range", 15, kE, "repeatTime is 0 to 255 and wraps beyond: split the call or use the count form"},
    {"mask-out-of-range", 15, kE, "mask is 1 to 128 for 16-bit, 1 to 64 for 32-bit types, where mask[1] must be 0"},
    {"count-out-of-range", 15, kE, "the count must be non-negative and fit its 32-bit parameter"},
    {"reduce-mask-repeat-swapped", 16, kE, "BlockReduceSum and PairReduceSum take (repeat, mask); WholeReduceSum takes (mask, repeat)"},
    {"stride-out-of-range", 16, kE, "repeat and block strides count 32-byte blocks; a destination block stride of 0 is undefined"},
    {"copy-param-out-of-range", 17, kE, "blockCount is at most 4095 and blockLen at most 2097151 bytes (or 65535 blocks): split the copy"},
    {"copy-zero-length", 17, kW, "blockCount or blockLen 0 copies nothing"},
    {"copy-unit-mixup", 17, kE, "DataCopyParams counts 32-byte blocks, DataCopyExtParams bytes (strides on the UB side in 32-byte blocks)"},
    {"copy-count-truncated", 18, kE, "the count is rounded down to 32 bytes: use DataCopyPad"},
    {"unsupported-round-mode", 19, kE, "choose a RoundMode that the Cast table has for this pair of types"},
    {"atomic-left-on", 20, kE, "SetAtomicNone() before the kernel ends"},
    {"mask-left-in-counter-mode", 20, kE, "SetMaskNorm() and ResetMask() before the kernel ends"},
    {"syncall-needs-mix", 20, kE, "set KERNEL_TYPE_MIX_AIV_1_0 (or __mix__(0, 1)), or use the soft SyncAll"},
    {"syncall-too-many-blocks", 20, kE, "launch at most as many blocks as there are vector cores"},
    {"syncall-deadlock", 20, kE, "every launched core must reach every SyncAll"},
    {"syncall-workspace", 20, kE, "soft SyncAll needs blockNum * 32 zeroed bytes of GM and as many of UB"},
    {"gm-line-shared", 20, kE, "keep scalar stores of different cores in different 64-byte lines, or store through MTE3"},
    {"gm-double-write", 20, kE, "give each output byte one owner core, or put SyncAll between the two stores"},
    {"gm-read-before-sync", 20, kE, "put SyncAll between the writing core and the reading core"},
    {"output-unwritten", 20, kE, "every output byte must be written: the framework does not zero outputs"},
    {"dcache-not-flushed", 20, kE, "DataCacheCleanAndInvalid after GlobalTensor::SetValue"},
    {"dcache-stale-read", 20, kE, "DataCacheCleanAndInvalid before reading what another core or MTE3 wrote"},
    {"atomic-on-unwritten", 20, kE, "zero the destination before SetAtomicAdd, with the right ordering"},
    {"atomic-type-mismatch", 20, kE, "give SetAtomicAdd the element type of the tensors that are stored"},
    {"partial-overlap", 0, kE, "source and destination must coincide exactly or be disjoint"},
    {"cast-overlap", 0, kW, "overlapping casts between widths are outside the documented rule: use another buffer"},
    {"reduce-tmp-too-small", 0, kE, "give ReduceSum a work tensor of one element per repeat, rounded up to 32 bytes"},
    {"fill-after-init-buffer", 0, kW, "Fill and InitOutput use the UB that InitBuffer left free: call them before InitBuffer"},
    {"zero-count-3510", 0, kE, "a zero count, mask or repeat is no safe no-op on 3510: guard the call"},
    {"gm-misaligned", 0, kE, "DataCopy needs GM aligned to the element size"},
    {"gather-out-of-bounds", 0, kE, "gather offsets are bytes inside the source tensor"},
    {"tpipe-count", 0, kE, "a kernel has exactly one TPipe"},
    {"missing-final-barrier", 0, kW, "without a TPipe, end the kernel with PipeBarrier<PIPE_ALL>()"},
    {"kernel-arguments", 0, kE, "describe one array per pointer argument, then workspace and tiling"},
    {"no-progress", 0, kE, "a loop that does not end, or waits for what no core does; a longer run: Options::max_steps or MOEGRAD_HOST_STEPS"},
    {"kernel-assert", 0, kE, "the condition of an ASSERT does not hold"},
    {"kernel-exception", 0, kE, "the kernel threw a C++ exception, which the device has not"},
    {"red-zone-damaged", 0, kE, "a raw pointer wrote outside its array"},
};

inline constexpr bool SameText(const char* a, std::string_view b) { return std::string_view(a) == b; }

inline const CatalogueEntry& Lookup(std::string_view name)
{
    for (const CatalogueEntry& entry : kCatalogue) {
        if (SameText(entry.name, name)) {
            return entry;
        }
    }
    static constexpr CatalogueEntry kUnknown{"internal-unknown-name", 0, kE, "report this as a bug"};
    return kUnknown;
}

}  // namespace moegrad::hostmodel
