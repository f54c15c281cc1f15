"""The PyTorch binding of a launch project, compiled against PyTorch with its launches run on the host model."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moegrad.codegen.targets.ascendc.hostbuild import MODEL_FLAGS, compiler, include_dir
from moegrad.codegen.targets.project.emit import project_spec
from moegrad.codegen.targets.project.launch import LaunchProject

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

STAND_INS = Path(__file__).parent / "stand_ins"

CALLS = """
import sys, numpy as np, torch, moegrad
torch.ops.load_library(sys.argv[1])
own = torch.ops.moegrad
torch.manual_seed(1)
tokens, topk, hidden = 5, 3, 40
grad = torch.randn(tokens, hidden).bfloat16()
rows = torch.randperm(tokens * topk).int()
x, scales = torch.randn(tokens * topk, hidden).bfloat16(), torch.rand(tokens, topk)
expert, bias = torch.randint(0, 4, (tokens, topk)).int(), torch.randn(4, hidden).bfloat16()

def same(got, want):
    assert torch.equal(got[0].view(torch.int16), want[0].view(torch.int16)), (got[0], want[0])
    assert (got[1] is None) == (want[1] is None)
    if got[1] is not None:
        torch.testing.assert_close(got[1], want[1], rtol=1e-4, atol=1e-3)

same(own.finalize_routing_v2_grad(grad, rows), moegrad.finalize_routing_v2_grad(grad, rows))
same(own.finalize_routing_v2_grad(grad, rows, x, scales), moegrad.finalize_routing_v2_grad(grad, rows, x, scales))
biased = (grad, rows, x, scales, expert, bias)
same(own.finalize_routing_v2_grad(*biased), moegrad.finalize_routing_v2_grad(*biased))
strided = torch.randn(hidden, tokens).bfloat16().t()
same(own.finalize_routing_v2_grad(strided, rows), moegrad.finalize_routing_v2_grad(strided.contiguous(), rows))
truncated = (x[:9].clone(), grad, rows, scales)
same(own.token_unpermute_grad(*truncated), moegrad.token_unpermute_grad(*truncated))
source = torch.tensor([1, 0, 0, -1, 4, 2]).int()
padded = (x[:6].clone(), grad, source, torch.rand(2, 3), True, [tokens, hidden])
same(own.token_unpermute_grad(*padded), moegrad.token_unpermute_grad(*padded))
capacity = torch.tensor([-1, 0, 3, -1, 5, 1, 2, -1, 4, -1, -1, 7, 6, -1, -1]).int()
dropped = (grad, capacity, torch.randn(2, 4, hidden).bfloat16(), scales, None, None, 1, 0, 2, 4)
same(own.finalize_routing_v2_grad(*dropped), moegrad.finalize_routing_v2_grad(*dropped))

meta = own.finalize_routing_v2_grad(*(each.to("meta") for each in (grad, rows, x, scales)))
assert (meta[0].shape, meta[0].dtype, meta[1].shape, meta[1].dtype) == (x.shape, x.dtype, scales.shape, scales.dtype)
for arguments, text in (
    ((grad, rows, None, scales), "finalize_routing_v2_grad: expanded_x: expected a tensor with scales, got null"),
    ((grad, rows.long()), "finalize_routing_v2_grad: expanded_row_idx: expected dtype int32, got int64"),
    ((grad, rows[:-1]), "expanded_row_idx: expected N = R * K elements, a multiple of R = 5, got shape (14,)"),
    ((grad.float(), rows), "there is no kernel for this mode with rows of float32"),
):
    try:
        own.finalize_routing_v2_grad(*arguments)
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
print("the binding agrees")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torch.utils.cpp_extension import include_paths, library_paths

    folder = tmp_path_factory.mktemp("launch")
    for path, text in LaunchProject(project_spec("ascend910b", "", 3, 40, "bf16", "f32")).files.items():
        if path.endswith(".asc"):
            text = text.replace("#ifndef MOEGRAD_HOST_MODEL\n", "#if 1\n")
            text, launches = re.subn(
                r"(\w+_launch)<<<(.+?), 0,\s+stream>>>\(", r"moegrad_test::Start(\1, \2, stream, ", text
            )
            assert launches == path.startswith("kernels/")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    target = folder / "libmoegrad_torch.so"
    includes = [STAND_INS, folder, folder / "common", folder / "kernels", include_dir(), *include_paths()]
    command = [*compiler(), *MODEL_FLAGS, "-std=c++20", "-O0", "-fPIC", "-shared", "-fno-gnu-unique", "-w", "-x", "c++"]
    command += [str(folder / "moegrad_torch.asc"), "-x", "none", "-o", str(target), *(f"-I{each}" for each in includes)]
    command += [
        "-DMOEGRAD_CHIP=ascend910b",
        "-DMOEGRAD_DISPATCH_KEY=CPU",
        "-include",
        str(STAND_INS / "launch_on_host.h"),
    ]
    command += [*(f"-L{each}" for each in library_paths()), "-ltorch", "-ltorch_cpu", "-lc10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:6000]
    return target


def test_the_binding_agrees_with_the_cpu_operators(library: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CALLS, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "the binding agrees"


def test_the_example_of_the_project_runs(library: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(library.parent / "example.py"), str(library), "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "both operators agree with PyTorch"
