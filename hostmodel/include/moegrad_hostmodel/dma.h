// DataCopy and DataCopyPad between global memory and UB, in all their forms.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "block_copy.h"
#include "params.h"

namespace moegrad::hostmodel {

inline constexpr int64_t kMaxBlockCount = 4095;
inline constexpr int64_t kMaxBlockBytes = 2097151;
inline constexpr int64_t kMaxUnits = 65535;

template <typename T>
inline constexpr bool kMovable = std::is_arithmetic_v<T> || kIsHalf<T> || kIsBfloat16<T>;

#define MGH_REQUIRE_MOVABLE(T)                                                                        \
    static_assert(::moegrad::hostmodel::kMovable<T> && (::moegrad::hostmodel::kIs3510 || !std::is_same_v<T, bool>), \
                  "unsupported-dtype: this element type has no DataCopy on this chip")

inline void CheckParam(Core& core, const Site& site, const char* name, int64_t value, int64_t low, int64_t high)
{
    if (value < low || value > high) {
        core.Report("copy-param-out-of-range", site, Text(name, " is ", value, ", outside [", low, ", ", high, "]"));
    }
}

template <typename T>
BlockCopy CountCopy(Core& core, const Site& site, const UbPlace& ub, const GmPlace& gm, int64_t count)
{
    BlockCopy copy;
    const int64_t asked = count * static_cast<int64_t>(sizeof(T));
    if (asked % kBlockBytes != 0) {
        core.Report("copy-count-truncated", site,
                    Text(count, " elements are ", asked, " bytes; only ", asked / kBlockBytes * kBlockBytes, " move"));
    }
    if (gm.array != nullptr && gm.offset % static_cast<int64_t>(sizeof(T)) != 0) {
        core.Report("gm-misaligned", site, Text("GM byte offset ", gm.offset));
    }
    copy.gm = gm;
    copy.ub_place = ub;
    copy.blocks = 1;
    copy.bytes = asked / kBlockBytes * kBlockBytes;
    copy.footprint = copy.bytes;
    copy.width = sizeof(T);
    copy.element = ElementTypeOf<T>();
    return copy;
}

// A copy that runs out of its UB buffer in 32-byte units but would fit in bytes was most likely meant in bytes.
inline void CheckUnits(Core& core, const Site& site, const BlockCopy& copy, int64_t units)
{
    if (copy.ub_place.buffer == nullptr || copy.blocks == 0) {
        return;
    }
    const int64_t room = copy.ub_place.buffer->end - copy.ub_place.begin;
    const int64_t used = (copy.blocks - 1) * copy.ub_step + copy.footprint;
    if (used > room && copy.blocks * units <= room) {
        core.Report("copy-unit-mixup", site,
                    Text("blockLen ", units, " means ", units * kBlockBytes, " bytes; the buffer has ", room));
    }
}

template <typename T>
BlockCopy StridedCopy(Core& core, const Site& site, const UbPlace& ub, const GmPlace& gm,
                      const AscendC::DataCopyParams& params, bool load)
{
    CheckParam(core, site, "blockCount", params.blockCount.wide(), 0, kMaxBlockCount);
    CheckParam(core, site, "blockLen", params.blockLen.wide(), 0, kMaxUnits);
    CheckParam(core, site, "srcGap", params.srcGap.wide(), 0, kMaxUnits);
    CheckParam(core, site, "dstGap", params.dstGap.wide(), 0, kMaxUnits);
    BlockCopy copy;
    const int64_t length = int64_t{params.blockLen} * kBlockBytes;
    const int64_t source_step = length + int64_t{params.srcGap} * kBlockBytes;
    const int64_t destination_step = length + int64_t{params.dstGap} * kBlockBytes;
    copy.gm = gm;
    copy.ub_place = ub;
    copy.blocks = params.blockCount;
    copy.bytes = length;
    copy.footprint = length;
    copy.gm_step = load ? source_step : destination_step;
    copy.ub_step = load ? destination_step : source_step;
    copy.width = sizeof(T);
    copy.element = ElementTypeOf<T>();
    CheckUnits(core, site, copy, params.blockLen.wide());
    return copy;
}

// Strides of a padded copy: bytes on the global side, 32-byte blocks on the UB side.
template <typename T>
BlockCopy PaddedCopy(Core& core, const Site& site, const UbPlace& ub, const GmPlace& gm,
                     const AscendC::DataCopyExtParams& params, bool load)
{
    const int64_t length = params.blockLen.wide();
    const int64_t gm_stride = load ? params.srcStride.wide() : params.dstStride.wide();
    const int64_t ub_stride = load ? params.dstStride.wide() : params.srcStride.wide();
    CheckParam(core, site, "blockCount", params.blockCount.wide(), 0, kMaxBlockCount);
    CheckParam(core, site, "blockLen", length, 0, kMaxBlockBytes);
    if (length % static_cast<int64_t>(sizeof(T)) != 0) {
        core.Report("copy-unit-mixup", site,
                    Text("blockLen counts bytes; ", length, " is no multiple of the element's ", sizeof(T)));
    }
    const int64_t lowest = kIs3510 && load ? -length : 0;
    const int64_t highest = kIs3510 ? int64_t{1} << 40 : 0xFFFFFFFF;
    CheckParam(core, site, load ? "srcStride" : "dstStride", gm_stride, lowest, highest);
    CheckParam(core, site, load ? "dstStride" : "srcStride", ub_stride, 0, kMaxUnits);
    BlockCopy copy;
    copy.gm = gm;
    copy.ub_place = ub;
    copy.blocks = params.blockCount;
    copy.bytes = length;
    copy.footprint = RoundUpToBlock(static_cast<uint32_t>(length));
    copy.gm_step = length + gm_stride;
    copy.ub_step = copy.footprint + ub_stride * kBlockBytes;
    copy.width = sizeof(T);
    copy.element = ElementTypeOf<T>();
    const int64_t room = ub.buffer == nullptr ? 0 : ub.buffer->end - ub.begin;
    const int64_t in_bytes = (copy.blocks - 1) * (copy.footprint + ub_stride) + copy.footprint;
    if (ub_stride != 0 && copy.blocks > 1 && copy.UbEnd() > room && in_bytes <= room) {
        core.Report("copy-unit-mixup", site,
                    Text("the UB side's stride of ", ub_stride, " means ", ub_stride * kBlockBytes, " bytes"));
    }
    return copy;
}

// The older struct of a padded copy: the same units in 16-bit fields.
inline AscendC::DataCopyExtParams Widened(const AscendC::DataCopyParams& params, const Site& site)
{
    Core& core = Self();
    CheckParam(core, site, "blockLen", params.blockLen.wide(), 0, kMaxUnits);
    CheckParam(core, site, "srcStride", params.srcStride.wide(), 0, kMaxUnits);
    CheckParam(core, site, "dstStride", params.dstStride.wide(), 0, kMaxUnits);
    AscendC::DataCopyExtParams wide(0, params.blockLen, params.srcStride, params.dstStride, 0);
    wide.blockCount = params.blockCount;
    return wide;
}

template <typename T>
void ApplyPadding(Core& core, const Site& site, BlockCopy& copy, const AscendC::DataCopyPadExtParams<T>& pad,
                  bool compact)
{
    const auto width = static_cast<int64_t>(sizeof(T));
    CheckParam(core, site, "leftPadding", pad.leftPadding.wide(), 0, kBlockBytes / width);
    CheckParam(core, site, "rightPadding", pad.rightPadding.wide(), 0, kBlockBytes / width);
    const int64_t stride = copy.ub_step - copy.footprint;
    copy.left = int64_t{pad.leftPadding} * width;
    const int64_t used = copy.left + copy.bytes + int64_t{pad.rightPadding} * width;
    copy.footprint = compact ? used : RoundUpToBlock(static_cast<uint32_t>(used));
    copy.ub_step = copy.footprint + stride;
    if (pad.isPad) {
        copy.fill = Fill::kValue;
        std::memcpy(copy.value.data(), &pad.paddingValue, sizeof(T));
        core.pad_value_bits = 0;
        std::memcpy(&core.pad_value_bits, &pad.paddingValue, sizeof(T));
    } else {
        copy.fill = used == copy.bytes ? Fill::kFirstElement : Fill::kArbitrary;
    }
}

}  // namespace moegrad::hostmodel

namespace AscendC {

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const int64_t count, MGH_HERE)
{
    MGH_REQUIRE_MOVABLE(T);
    using namespace moegrad::hostmodel;
    const Site site{"DataCopy", where};
    if (CountOk(Self(), site, count)) {
        IssueLoad(site, CountCopy<T>(Self(), site, PlaceOf(dst), PlaceOf(src), count));
    }
}

template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const int64_t count, MGH_HERE)
{
    MGH_REQUIRE_MOVABLE(T);
    using namespace moegrad::hostmodel;
    const Site site{"DataCopy", where};
    if (CountOk(Self(), site, count)) {
        IssueStore(site, CountCopy<T>(Self(), site, PlaceOf(src), PlaceOf(dst), count));
    }
}

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params, MGH_HERE)
{
    MGH_REQUIRE_MOVABLE(T);
    using namespace moegrad::hostmodel;
    const Site site{"DataCopy", where};
    IssueLoad(site, StridedCopy<T>(Self(), site, PlaceOf(dst), PlaceOf(src), params, true));
}

template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params, MGH_HERE)
{
    MGH_REQUIRE_MOVABLE(T);
    using namespace moegrad::hostmodel;
    const Site site{"DataCopy", where};
    IssueStore(site, StridedCopy<T>(Self(), site, PlaceOf(src), PlaceOf(dst), params, false));
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params,
                 const DataCopyPadExtParams<T>& pad, MGH_HERE)
{
    MGH_REQUIRE_MOVABLE(T);
    static_assert(mode == PaddingMode::Normal || moegrad::hostmodel::kIs3510, "PaddingMode::Compact needs a 950");
    using namespace moegrad::hostmodel;
    const Site site{"DataCopyPad", where};
    BlockCopy copy = PaddedCopy<T>(Self(), site, PlaceOf(dst), PlaceOf(src), params, true);
    ApplyPadding(Self(), site, copy, pad, mode == PaddingMode::Compact);
    IssueLoad(site, copy);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params, MGH_HERE)
{
    MGH_REQUIRE_MOVABLE(T);
    using namespace moegrad::hostmodel;
    const Site site{"DataCopyPad", where};
    IssueStore(site, PaddedCopy<T>(Self(), site, PlaceOf(src), PlaceOf(dst), params, false));
}

// The older parameter structs, with 16-bit fields in the same units.
template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                 const DataCopyPadParams& pad, MGH_HERE)
{
    T value;
    std::memcpy(&value, &pad.paddingValue, sizeof(T));
    const DataCopyExtParams wide = moegrad::hostmodel::Widened(params, {"DataCopyPad", where});
    DataCopyPad(dst, src, wide, DataCopyPadExtParams<T>(pad.isPad, pad.leftPadding, pad.rightPadding, value), where);
}

template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params, MGH_HERE)
{
    DataCopyPad(dst, src, moegrad::hostmodel::Widened(params, {"DataCopyPad", where}), where);
}

}  // namespace AscendC
