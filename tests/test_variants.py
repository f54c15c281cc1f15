"""Instruction sets: a portable baseline, chosen variants, and a processor from before AVX (field case 17)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import moegrad
from moegrad import kernels
from moegrad.codegen.targets.cython.toolchain import BASE_FLAGS, ISA_FLAGS, isa_variants

X86_64 = "avx2" in isa_variants()
WIDE = re.compile(r"%[yz]mm\d|\t(v[a-z0-9]+|[a-z]+fma[a-z0-9]*)\s+.*%xmm")

RUN = """
import numpy as np, moegrad
rng = np.random.default_rng(0)
grad, x = (rng.standard_normal(s).astype(np.float32) for s in ((3, 100), (6, 100)))
rows, scales = np.array([4, 0, 5, 2, 1, 3], np.int32), np.ones((3, 2), np.float16)
out, weights = moegrad.finalize_routing_v2_grad(grad, rows, x, scales)
print(moegrad.show_config(mode="dict")["variant"]["used"], out.tobytes().hex(), weights.tobytes().hex())
"""


def compiled_files(variant: str) -> list[Path]:
    import importlib

    package = importlib.import_module(f"moegrad.generated.cython.{variant}")
    return sorted(path for folder in package.__path__ for path in Path(folder).glob("*.so"))


def disassembly(path: Path) -> str:
    return subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(not X86_64, reason="variants are for x86-64")
@pytest.mark.parametrize("module", kernels.compiled("baseline"))
def test_the_baseline_has_no_instruction_of_avx(module: str) -> None:
    (path,) = [path for path in compiled_files("baseline") if path.name.startswith(f"{module}.")]
    found = WIDE.search(disassembly(path))
    assert found is None, found


@pytest.mark.skipif(not X86_64, reason="variants are for x86-64")
def test_the_run_time_itself_has_no_instruction_of_avx() -> None:
    from moegrad import _native

    assert WIDE.search(disassembly(Path(str(_native.__file__)))) is None


@pytest.mark.skipif(not X86_64, reason="variants are for x86-64")
@pytest.mark.parametrize(("variant", "register"), [("avx2", "%ymm"), ("avx512", "%zmm")])
def test_a_variant_uses_its_registers(variant: str, register: str) -> None:
    name = "finalize_routing_v2_grad__scales__f32_f32"
    (path,) = [path for path in compiled_files(variant) if path.name.startswith(f"{name}.")]
    assert register in disassembly(path)


def test_nothing_is_tuned_for_the_building_machine() -> None:
    flags = [*BASE_FLAGS, *(flag for each in ISA_FLAGS.values() for flag in each)]
    assert not [flag for flag in flags if flag.startswith(("-march", "-mtune", "-mcpu")) or "fast" in flag]
    assert "-ffp-contract=off" in BASE_FLAGS


@pytest.mark.skipif(not X86_64, reason="emulates an x86-64 processor")
def test_a_processor_without_avx_runs_the_baseline_with_the_same_bits() -> None:
    """NumPy needs SSE4.2, so the oldest processor that can run it is emulated."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-x86_64 is not installed; make test-all installs it")
    command = [sys.executable, "-c", RUN]
    environment = {key: value for key, value in os.environ.items() if key != "MOEGRAD_ISA"}
    outputs = []
    for prefix in ([], [emulator, "-cpu", "Nehalem"]):
        done = subprocess.run([*prefix, *command], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.split())
    assert outputs[1][0] == "baseline"
    assert outputs[0][1:] == outputs[1][1:]


def test_show_config_names_the_variant_in_use() -> None:
    config = moegrad.show_config(mode="dict")
    assert config is not None
    assert config["variant"]["used"] in kernels.VARIANTS
