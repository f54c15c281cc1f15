"""The CPU target: Cython kernels on 32 fp32 lanes."""
