// Tiling data: keys, the struct's copy to the stack, and what is wrong when host and kernel disagree.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sync.h"

namespace moegrad::hostmodel {

inline constexpr uint8_t kTilingPoison = 0xA5;

// A distinct address for each type.
template <typename S>
const void* TypeIdentity()
{
    static const char identity = 0;
    return &identity;
}

// The first aligned word that still holds the poison; padding is cleared first, so only fields count.
template <typename S>
int64_t FirstUnsetWord(S data)
{
#if defined(__GNUC__) && !defined(__clang__)
    __builtin_clear_padding(&data);
#endif
    uint8_t bytes[sizeof(S)];
    std::memcpy(bytes, &data, sizeof(S));
    for (std::size_t at = 0; at + 4 <= sizeof(S); at += 4) {
        if (bytes[at] == kTilingPoison && std::memcmp(bytes + at, bytes + at + 1, 3) == 0) {
            return static_cast<int64_t>(at);
        }
    }
    return -1;
}

constexpr uint64_t RoundUpToEight(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

template <typename S>
S ReadTiling(const uint8_t* tiling, const Where& where)
{
    static_assert(std::is_trivially_copyable_v<S>, "a tiling struct is plain data");
    Core& core = Self();
    const Site site{"GET_TILING_DATA", where};
    S data;
    std::memset(static_cast<void*>(&data), kTilingPoison, sizeof(S));
    const GmArray* array = core.session.gm.Find(tiling);
    if (array == nullptr) {
        core.Report("kernel-arguments", site, "the tiling argument is no tiling data");
        return data;
    }
    if (RoundUpToEight(array->bytes()) != RoundUpToEight(sizeof(S))) {
        core.Report("tiling-struct-mismatch", site,
                    Text("the host wrote ", array->bytes(), " bytes, the kernel's struct has ", sizeof(S)));
    } else if (core.session.tiling_type != nullptr && core.session.tiling_type != TypeIdentity<S>()) {
        core.Report("tiling-struct-mismatch", site, "the host filled another struct of the same size");
    }
    std::memcpy(static_cast<void*>(&data), array->data(), array->bytes() < sizeof(S) ? array->bytes() : sizeof(S));
    const int64_t unset = FirstUnsetWord(data);
    if (unset >= 0) {
        core.Report("tiling-unset-field", site, Text("the field at byte ", unset, " was never assigned"));
    }
    return data;
}

}  // namespace moegrad::hostmodel

#define TILING_KEY_IS(key) (::moegrad::hostmodel::Self().session.tiling_key == static_cast<uint64_t>(key))

#define GET_TILING_DATA_WITH_STRUCT(Struct, name, address) \
    Struct name = ::moegrad::hostmodel::ReadTiling<Struct>(address, {__FILE__, __LINE__})

// The struct that REGISTER_TILING_DEFAULT named, in the same function or at file level.
#define GET_TILING_DATA(name, address) GET_TILING_DATA_WITH_STRUCT(MoegradDefaultTiling, name, address)
#define REGISTER_TILING_DEFAULT(Struct) using MoegradDefaultTiling [[maybe_unused]] = Struct
#define REGISTER_TILING_FOR_TILINGKEY(expression, Struct) \
    static_assert(sizeof(Struct) != 0 && sizeof(expression) != 0, "a tiling struct for some keys")

// Host side, old style.
#define BEGIN_TILING_DATA_DEF(Struct) \
    struct Struct {                   \
        using Self = Struct;
#define TILING_DATA_FIELD_DEF(type, name)  \
    type name;                             \
    void set_##name(type v) { name = v; }  \
    type get_##name() const { return name; }
#define TILING_DATA_FIELD_DEF_ARR(type, length, name)                                        \
    type name[length];                                                                       \
    void set_##name(const type* v) { std::memcpy(name, v, sizeof(name)); }                   \
    const type* get_##name() const { return name; }
#define TILING_DATA_FIELD_DEF_STRUCT(Struct, name) Struct name;
#define END_TILING_DATA_DEF \
    }                       \
    ;
#define REGISTER_TILING_DATA_CLASS(op, Struct) static_assert(sizeof(Struct) != 0, "registered for an operator");
