// What differs between the chips, for a client.
#pragma once

#include <cstdint>

namespace moegrad::hostacl {

// Memory of one device.
uint64_t DeviceBytes();

}  // namespace moegrad::hostacl
