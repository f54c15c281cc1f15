"""The NPU target: Ascend C kernels for the vector cores, and their run on the host model."""
