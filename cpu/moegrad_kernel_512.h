/* moegrad_kernel.h for kernels that use vectors of 512 bits where the instruction set has them. */
#define MOEGRAD_VECTOR_512
#include "moegrad_kernel.h"
