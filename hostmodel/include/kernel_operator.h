// The header that an Ascend C kernel includes. Here it is the host model: the same names, run on the CPU under checks.
// Choose the chip with -DMOEGRAD_CHIP=ascend910b | ascend910_93 | ascend950; see docs/hostmodel.md.
#ifndef MOEGRAD_KERNEL_OPERATOR_H
#define MOEGRAD_KERNEL_OPERATOR_H

#include "moegrad_hostmodel/abi.h"
#include "moegrad_hostmodel/cast.h"
#include "moegrad_hostmodel/functions.h"
#include "moegrad_hostmodel/fused.h"
#include "moegrad_hostmodel/helpers.h"
#include "moegrad_hostmodel/intrinsics.h"
#include "moegrad_hostmodel/reduce_all.h"
#include "moegrad_hostmodel/select.h"
#include "moegrad_hostmodel/state.h"

#endif
