"""Kernels of these tests are many and small: built without optimisation they cost the least in all."""

from __future__ import annotations

import os

os.environ.setdefault("MOEGRAD_HOST_OPT", "-O0")
