"""The targets: each prints lowered programs as source and builds it."""
