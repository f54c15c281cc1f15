// Messages out of parts.
#pragma once

#include <sstream>
#include <string>

namespace moegrad::hostacl {

template <typename... Parts>
std::string Text(const Parts&... parts)
{
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

}  // namespace moegrad::hostacl
