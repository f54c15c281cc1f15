"""C++ headers of the host model, as package data."""
