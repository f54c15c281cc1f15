// Facts of the chip that host code asks for. The chip is the one of -DMOEGRAD_CHIP.
#pragma once

#include <cstdint>

#include "moegrad_hostmodel/chip.h"

namespace fe {
class PlatFormInfos;
}  // namespace fe

namespace platform_ascendc {

enum class CoreMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6 };

enum class SocVersion { ASCEND910B = 1, ASCEND950 = 4 };

// Without platform information every answer is 0.
class PlatformAscendC {
public:
    explicit PlatformAscendC(fe::PlatFormInfos* platform) : known_(platform != nullptr) {}

    // Cube and vector cores are apart on all modelled chips: the number is that of the vector cores.
    uint32_t GetCoreNum() const { return GetCoreNumAiv(); }
    uint32_t GetCoreNumAiv() const { return known_ ? moegrad::hostmodel::kVectorCores : 0; }
    uint32_t GetCoreNumAic() const { return GetCoreNumAiv() / 2; }

    // Only the Unified Buffer is modelled; other memories have 0 bytes.
    void GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const
    {
        bytes = known_ && type == CoreMemType::UB ? moegrad::hostmodel::kUbBytes : 0;
    }

    uint32_t GetLibApiWorkSpaceSize() const { return known_ ? 16u << 20 : 0; }

    // A3 answers as A2 does.
    SocVersion GetSocVersion() const
    {
        return moegrad::hostmodel::kIs3510 ? SocVersion::ASCEND950 : SocVersion::ASCEND910B;
    }

private:
    friend class PlatformAscendCManager;
    PlatformAscendC() : known_(true) {}

    bool known_;
};

// The chip of this process, for programs that launch kernels themselves.
class PlatformAscendCManager {
public:
    static PlatformAscendC* GetInstance()
    {
        static PlatformAscendC platform;
        return &platform;
    }
};

}  // namespace platform_ascendc
