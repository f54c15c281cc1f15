"""Kernels as users build them: compiled in one go, then run through their Python entry against oracle and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from moegrad.codegen.generate import program_of
from moegrad.codegen.operators import make_spec
from moegrad.codegen.parsing import function, read_program
from moegrad.codegen.pipeline import lower
from moegrad.codegen.sets import REFERENCE_HIDDEN, REFERENCE_TOPK, reference_set
from moegrad.codegen.signature import Tensor, signature
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.cython.build import build_modules, load_module
from moegrad.codegen.targets.cython.emit import emit_module
from moegrad.codegen.writer import FileWriter
from moegrad.tools.cases import Case
from moegrad.tools.compare import explain
from moegrad.tools.program_cases import output_shapes, program_inputs, public_outputs

from ..helpers import NUMPY, PROGRAMS, SLOT_CHAIN, Array, Inputs, Program, assert_same, integers, names, slot_map

ROOT = Path(__file__).parents[3]
GENERATED = ROOT / "generated" / "cython"
EXAMPLES = ROOT / "examples"

GENERIC = [
    make_spec("finalize_routing_v2_grad", "scales_bias", "f16", "f16"),
    make_spec("token_unpermute_grad", "padded_probs", "f32", "bf16"),
]
BUILT = [program for program in PROGRAMS if program is not SLOT_CHAIN]
OTHERS = [
    (program, program.spec(data, "f16")) for program, data in zip(BUILT, ["bf16", "f32", "bf16", "f16"], strict=True)
]
SCALE_SQUARED = [KernelSpec("scale_squared", "bf16", "f32"), KernelSpec("scale_squared", "f16", "f16", 3, 70)]
TWO_DOTS = [KernelSpec("gather_two_dots", "bf16", "f32", 4, 64), KernelSpec("gather_two_dots", "f32", "f16")]


def programs() -> dict[str, tuple[ModuleOp, KernelSpec]]:
    """Every kernel of this file by key."""
    found = {spec.key: (program_of(spec), spec) for spec in [*reference_set(), *GENERIC]}
    found |= {spec.key: (program.parsed(), spec) for program, spec in [*OTHERS, (SLOT_CHAIN, SLOT_CHAIN.spec("f16"))]}
    for spec in [*SCALE_SQUARED, *TWO_DOTS]:
        found[spec.key] = (read_program(EXAMPLES / f"{spec.program}.mlir"), spec)
    return found


PROGRAM_OF = programs()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """All kernels, built in one call; the reference set from the files that are committed."""
    folder = tmp_path_factory.mktemp("kernels")
    writer = FileWriter(folder)
    for key, (program, spec) in PROGRAM_OF.items():
        if spec not in reference_set() and spec.program != SLOT_CHAIN.name:
            writer.add(f"{key}.pyx", emit_module(program, [spec], "test", python=True))
    writer.write()
    committed = sorted(GENERATED.glob("*.pyx"))
    built = build_modules([*committed, *(folder / name for name in sorted(writer.files))], folder)
    assert len(built) == len(PROGRAM_OF) - 1
    return {path.name.split(".")[0]: load_module(path) for path in built}


def bits(array: Array) -> Array:
    """16-bit floats pass as bits."""
    return array.view(np.uint16) if array.dtype.itemsize == 2 else array


def tensors(key: str) -> list[Tensor]:
    """The signature of a kernel, inputs and outputs."""
    program, spec = PROGRAM_OF[key]
    return signature(function(lower(program, spec, "cython", "specialize")))


def call(
    module: ModuleType, key: str, inputs: Inputs, shapes: dict[str, tuple[int, ...]], num_threads: int = 1
) -> Inputs:
    """Runs a kernel on outputs that hold NaN in every element; returns them by name."""
    spec = PROGRAM_OF[key][1]
    outputs = {}
    for tensor in tensors(key):
        if tensor.output:
            tag = {"bf16": "bf16", "f16": "f16", "f32": "f32"}[str(tensor.type).rsplit("x", 1)[1].rstrip(">")]
            outputs[tensor.name] = np.full(shapes[tensor.name], np.nan, NUMPY[tag])
    assert spec.data in NUMPY
    arguments = {name: bits(array) for name, array in {**inputs, **outputs}.items()}
    wanted = {tensor.name for tensor in tensors(key)}
    module.run(**{name: array for name, array in arguments.items() if name in wanted}, num_threads=num_threads)
    return outputs


def case_of(spec: KernelSpec, tokens: int, topk: int, hidden: int, **fields: Any) -> Case:
    """A case that the kernel of a spec can run."""
    operator, _, mode = spec.program.partition("__")
    padded = mode.startswith("padded")
    bias = mode == "scales_bias"
    shape = {"experts": 3, "capacity": 4} if padded or fields.get("drop_pad_mode") else {"experts": 3} if bias else {}
    if padded and not tokens:
        fields = fields | {"drop": "all"}
    return Case(
        operator,
        mode,
        spec.data,
        spec.weight or None,
        tokens,
        1 if padded else topk,
        hidden,
        **(shape | fields),
        seed=7,
    )


CALLS: dict[str, Callable[[KernelSpec, int, int, int], Case]] = {
    "full": lambda s, r, k, h: case_of(s, r, k, h),
    "special": lambda s, r, k, h: case_of(s, r, k, h, values="special"),
    "some-dropped": lambda s, r, k, h: case_of(s, r, k, h, **dropped(s, "some")),
    "all-dropped": lambda s, r, k, h: case_of(s, r, k, h, **dropped(s, "all")),
    "no-tokens": lambda s, _, k, h: case_of(s, 0, k, h),
}


def dropped(spec: KernelSpec, which: str) -> dict[str, Any]:
    """Fields of a case with inactive slots."""
    if "padded" in spec.program:
        return {"drop": which}
    if spec.program.startswith("finalize"):
        return {"drop_pad_mode": 1, "drop": which}
    return {"rows": 0 if which == "all" else 9, "drop": which}


SHAPES = {spec.key: (5, spec.topk or 3, spec.hidden or 45) for spec in [*reference_set(), *GENERIC]}


@pytest.mark.parametrize("layout", CALLS)
@pytest.mark.parametrize("spec", [*reference_set(), *GENERIC], ids=lambda spec: spec.key)
def test_a_kernel_agrees_with_the_oracle(kernels: dict[str, ModuleType], spec: KernelSpec, layout: str) -> None:
    case = CALLS[layout](spec, *SHAPES[spec.key])
    inputs, _ = program_inputs(case)
    outputs = call(kernels[spec.key], spec.key, inputs, output_shapes(case))
    assert explain(*public_outputs(case, outputs), case.expected()) is None


@pytest.mark.parametrize("spec", [*reference_set(), *GENERIC], ids=lambda spec: spec.key)
def test_threads_do_not_change_a_bit(kernels: dict[str, ModuleType], spec: KernelSpec) -> None:
    case = (
        case_of(spec, 40, *SHAPES[spec.key][1:])
        if "padded" not in spec.program
        else CALLS["full"](spec, *SHAPES[spec.key])
    )
    inputs, _ = program_inputs(case)
    runs = [call(kernels[spec.key], spec.key, inputs, output_shapes(case), threads) for threads in (1, 2, 7)]
    for other in runs[1:]:
        assert {name: array.tobytes() for name, array in other.items()} == {
            name: array.tobytes() for name, array in runs[0].items()
        }


@pytest.mark.parametrize(("program", "spec"), OTHERS, ids=[program.name for program, _ in OTHERS])
def test_the_kernel_of_another_program_agrees_with_numpy(
    kernels: dict[str, ModuleType], program: Program, spec: KernelSpec
) -> None:
    inputs = program.inputs(np.random.default_rng(3), NUMPY[spec.data], NUMPY["f16"])
    expected = program.expected(inputs, NUMPY[spec.data], NUMPY["f16"])
    shapes = {name: array.shape for name, array in expected.items()}
    for threads in (1, 2):
        assert_same(call(kernels[spec.key], spec.key, inputs, shapes, threads), expected)


def test_a_kernel_with_a_map_by_token_and_choice(tmp_path: Path) -> None:
    spec = SLOT_CHAIN.spec("f16")
    source = tmp_path / f"{spec.key}.pyx"
    source.write_text(emit_module(SLOT_CHAIN.parsed(), [spec], "test", python=True))
    (built,) = build_modules([source], tmp_path)
    inputs = SLOT_CHAIN.inputs(np.random.default_rng(3), NUMPY["f16"], NUMPY["f16"])
    expected = SLOT_CHAIN.expected(inputs, NUMPY["f16"], NUMPY["f16"])
    shapes = {name: array.shape for name, array in expected.items()}
    assert_same(call(load_module(built), spec.key, inputs, shapes), expected)


@pytest.mark.parametrize("spec", SCALE_SQUARED, ids=lambda spec: spec.key)
def test_the_example_scale_squared(kernels: dict[str, ModuleType], spec: KernelSpec) -> None:
    """out[index[i]] = grad[t] * p^2, rounded once: not what two roundings give."""
    rng, data, weight = np.random.default_rng(5), NUMPY[spec.data], NUMPY[spec.weight]
    tokens, topk, hidden, rows = 4, 3, 70, 9
    grad = rng.normal(size=(tokens, hidden)).astype(data)
    probs = rng.uniform(size=(tokens, topk)).astype(weight)
    index = slot_map(rng, tokens * topk, rows)
    expected = np.zeros((rows, hidden), data)
    for slot, row in enumerate(index):
        token, choice = divmod(slot, topk)
        if row >= 0:
            p = np.float32(probs[token, choice])
            expected[row] = (grad[token].astype(np.float32) * p * p).astype(data)
    got = call(kernels[spec.key], spec.key, {"grad": grad, "index": index, "probs": probs}, {"out": (rows, hidden)})
    assert_same(got, {"out": expected})


@pytest.mark.parametrize("spec", TWO_DOTS, ids=lambda spec: spec.key)
def test_the_example_gather_two_dots(kernels: dict[str, ModuleType], spec: KernelSpec) -> None:
    """Exact sums of small integers, 0 for a dropped slot."""
    rng, data, weight = np.random.default_rng(6), NUMPY[spec.data], NUMPY[spec.weight]
    tokens, topk, hidden, rows = 4, spec.topk or 3, spec.hidden or 45, 9
    x, grad, other = (integers(rng, (n, hidden), data) for n in (rows, tokens, tokens))
    index = slot_map(rng, tokens * topk, rows)
    expected = {name: np.zeros((tokens, topk), weight) for name in ("first", "second")}
    for slot, row in enumerate(index):
        token, choice = divmod(slot, topk)
        for name, gradient in (("first", grad), ("second", other)):
            if row >= 0:
                terms = x[row].astype(np.float64) * gradient[token].astype(np.float64)
                expected[name][token, choice] = terms.sum()
    shapes = {name: array.shape for name, array in expected.items()}
    got = call(kernels[spec.key], spec.key, {"x": x, "index": index, "grad": grad, "other": other}, shapes)
    assert_same(got, expected)


BIAS = make_spec("finalize_routing_v2_grad", "scales_bias", "bf16", "f32", REFERENCE_TOPK, REFERENCE_HIDDEN)
R, K, H, M, E = 2, REFERENCE_TOPK, REFERENCE_HIDDEN, 16, 3


def bias_arguments() -> dict[str, Array]:
    """Good arguments of the reference kernel with bias."""
    rows = {"grad_y": R, "expanded_x": M, "bias": E, "grad_expanded_x": M}
    return {
        **{name: np.zeros((count, H), np.uint16) for name, count in rows.items()},
        **{name: np.zeros((R, K), np.float32) for name in ("scales", "grad_scales")},
        "expanded_row_idx": np.full(R * K, -1, np.int32),
        "expert_idx": np.zeros((R, K), np.int32),
    }


REFUSED = {
    "grad_y-hidden": ("grad_y", (R, H - 1), f"grad_y: expected H = {H} in dimension 1, got {H - 1}"),
    "expanded_x-hidden": ("expanded_x", (M, H + 1), f"expanded_x: expected H = {H} in dimension 1, got {H + 1}"),
    "scales-tokens": ("scales", (R + 1, K), f"scales: expected R = {R} in dimension 0, got {R + 1}"),
    "scales-topk": ("scales", (R, K - 1), f"scales: expected K = {K} in dimension 1, got {K - 1}"),
    "expert_idx-tokens": ("expert_idx", (R - 1, K), f"expert_idx: expected R = {R} in dimension 0, got {R - 1}"),
    "expert_idx-topk": ("expert_idx", (R, 1), f"expert_idx: expected K = {K} in dimension 1, got 1"),
    "bias-hidden": ("bias", (E, 1), f"bias: expected H = {H} in dimension 1, got 1"),
    "out-rows": ("grad_expanded_x", (M - 1, H), f"grad_expanded_x: expected M = {M} in dimension 0, got {M - 1}"),
    "out-hidden": ("grad_expanded_x", (M, 8), f"grad_expanded_x: expected H = {H} in dimension 1, got 8"),
    "grad_scales-tokens": ("grad_scales", (R + 1, K), f"grad_scales: expected R = {R} in dimension 0, got {R + 1}"),
    "grad_scales-topk": ("grad_scales", (R, K + 1), f"grad_scales: expected K = {K} in dimension 1, got {K + 1}"),
    "index-slots": (
        "expanded_row_idx",
        (R * K - 1,),
        f"expanded_row_idx: expected N = {R * K} in dimension 0, got {R * K - 1}",
    ),
}
CASES = sorted(REFUSED)


@pytest.mark.parametrize("case", CASES)
def test_an_entry_refuses_shapes_that_disagree(kernels: dict[str, ModuleType], case: str) -> None:
    name, shape, message = REFUSED[case]
    good = bias_arguments()
    good["grad_scales"][...] = 5
    with pytest.raises(ValueError, match=r"expected \w+ = \d+ in dimension") as error:
        kernels[BIAS.key].run(**(good | {name: np.zeros(shape, good[name].dtype)}))
    assert str(error.value) == message
    assert (good["grad_scales"] == 5).all(), "written before the checks"
    kernels[BIAS.key].run(**good)
    assert (good["grad_scales"] == 0).all()


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("grad_y", np.zeros((R, H), np.float32)),
        ("expanded_row_idx", np.zeros(R * K, np.int64)),
        ("scales", np.zeros((R, K), np.float64)),
        ("grad_y", np.zeros((R, H, 1), np.uint16)),
        ("grad_y", np.zeros((R, 2 * H), np.uint16)[:, ::2]),
    ],
    ids=["float", "int64", "float64", "rank", "strided"],
)
def test_an_entry_refuses_arrays_of_another_kind(kernels: dict[str, ModuleType], name: str, bad: Array) -> None:
    with pytest.raises(ValueError, match=r"Buffer dtype mismatch|wrong number of dimensions|not C.contiguous"):
        kernels[BIAS.key].run(**(bias_arguments() | {name: bad}))


def test_an_entry_takes_read_only_inputs_and_refuses_such_outputs(kernels: dict[str, ModuleType]) -> None:
    arguments = bias_arguments()
    for name, array in arguments.items():
        array.flags.writeable = name.startswith("grad_expanded") or name == "grad_scales"
    kernels[BIAS.key].run(**arguments)
    arguments["grad_scales"].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernels[BIAS.key].run(**arguments)


def test_the_entry_says_what_it_takes(kernels: dict[str, ModuleType]) -> None:
    doc = kernels[BIAS.key].run.__doc__
    for line in ("grad_y: (R, H) bf16 as uint16 bits", "expanded_row_idx: (N,) int32", "scales: (R, K) f32"):
        assert line in doc


@pytest.mark.parametrize("key", sorted(set(PROGRAM_OF) - {SLOT_CHAIN.spec("f16").key}))
def test_a_module_lists_its_kernel_tensors_and_sizes(kernels: dict[str, ModuleType], key: str) -> None:
    module, spec = kernels[key], PROGRAM_OF[key][1]
    assert list(module.KERNELS) == [spec.shape_key]
    assert list(module.TENSORS) == names(tensors(key))
    assert len(set(module.SIZES)) == len(module.SIZES)
