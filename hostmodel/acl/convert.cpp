// Sizes and conversions of elements.
#include <cmath>

#include "acl/acl_base.h"
#include "moegrad_hostmodel/rounding.h"

size_t aclDataTypeSize(aclDataType dataType)
{
    switch (dataType) {
        case ACL_INT8:
        case ACL_UINT8:
        case ACL_BOOL:
        case ACL_HIFLOAT8:
        case ACL_FLOAT8_E5M2:
        case ACL_FLOAT8_E4M3FN:
        case ACL_FLOAT8_E8M0: return 1;
        case ACL_FLOAT16:
        case ACL_BF16:
        case ACL_INT16:
        case ACL_UINT16: return 2;
        case ACL_FLOAT:
        case ACL_INT32:
        case ACL_UINT32:
        case ACL_COMPLEX32: return 4;
        case ACL_DOUBLE:
        case ACL_INT64:
        case ACL_UINT64:
        case ACL_COMPLEX64: return 8;
        case ACL_COMPLEX128: return 16;
        default: return 0;
    }
}

float aclFloat16ToFloat(aclFloat16 value)
{
    const int exponent = (value >> 10) & 0x1F;
    const int fraction = value & 0x3FF;
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
    return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

aclFloat16 aclFloatToFloat16(float value)
{
    using namespace moegrad::hostmodel;
    if (std::isnan(value)) {
        return HalfFormat::kMax;
    }
    return static_cast<aclFloat16>(HalfFormat::Encode(static_cast<double>(value), Rounding::kNearestEven, true));
}
