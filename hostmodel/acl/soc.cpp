#include "soc.h"

#include <string_view>

#include "acl/acl_base.h"
#include "moegrad_hostmodel/chip.h"

namespace {

struct Soc {
    std::string_view chip;
    const char* name;
    uint64_t gib;
};

const Soc& ThisSoc()
{
    static constexpr Soc known[] = {
        {"ascend910b", "Ascend910B1", 64},         {"ascend910b1", "Ascend910B1", 64},
        {"ascend910b2", "Ascend910B2", 64},        {"ascend910b3", "Ascend910B3", 64},
        {"ascend910b4", "Ascend910B4", 32},        {"ascend910_93", "Ascend910_9391", 64},
        {"ascend950", "Ascend950PR_958b", 112},    {"ascend950pr_957b", "Ascend950PR_957b", 112},
        {"ascend950pr_958x", "Ascend950PR_958b", 112},
    };
    const Soc* soc = known;
    while (soc->chip != moegrad::hostmodel::kChipName) {  // chip.h knows no other names
        ++soc;
    }
    return *soc;
}

}  // namespace

uint64_t moegrad::hostacl::DeviceBytes() { return ThisSoc().gib << 30; }

const char* aclrtGetSocName(void) { return ThisSoc().name; }
