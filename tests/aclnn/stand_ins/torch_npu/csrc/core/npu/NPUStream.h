// The current stream, of which there is no need on the host: launches run at once.
#pragma once

namespace c10_npu {

struct NPUStream {
    void* stream(bool) const { return nullptr; }
};

inline NPUStream getCurrentNPUStream() { return {}; }

}  // namespace c10_npu
