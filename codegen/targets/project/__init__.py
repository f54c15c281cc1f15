"""Device projects: an operator package around the Ascend C kernels, and its twin for the host."""
