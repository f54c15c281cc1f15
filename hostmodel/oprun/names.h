// Types, formats and lists in words, for messages.
#pragma once

#include <string>
#include <vector>

#include "graph/types.h"

namespace moegrad::oprun {

inline std::string NameOf(ge::DataType type)
{
    switch (type) {
        case ge::DT_FLOAT: return "float32";
        case ge::DT_FLOAT16: return "float16";
        case ge::DT_BF16: return "bfloat16";
        case ge::DT_INT8: return "int8";
        case ge::DT_INT16: return "int16";
        case ge::DT_INT32: return "int32";
        case ge::DT_INT64: return "int64";
        case ge::DT_UINT8: return "uint8";
        case ge::DT_UINT16: return "uint16";
        case ge::DT_UINT32: return "uint32";
        case ge::DT_UINT64: return "uint64";
        case ge::DT_DOUBLE: return "float64";
        case ge::DT_BOOL: return "bool";
        default: return "type " + std::to_string(static_cast<int>(type));
    }
}

inline std::string NameOf(ge::Format format)
{
    switch (format) {
        case ge::FORMAT_NCHW: return "NCHW";
        case ge::FORMAT_NHWC: return "NHWC";
        case ge::FORMAT_ND: return "ND";
        case ge::FORMAT_NC1HWC0: return "NC1HWC0";
        case ge::FORMAT_FRACTAL_NZ: return "FRACTAL_NZ";
        default: return "format " + std::to_string(static_cast<int>(format));
    }
}

inline std::string Join(const std::vector<std::string>& parts, const char* separator)
{
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : separator) + part;
    }
    return text;
}

}  // namespace moegrad::oprun
