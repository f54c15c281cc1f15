"""C headers that generated kernels include, as package data."""
