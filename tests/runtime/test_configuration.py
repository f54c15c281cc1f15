"""Choice of variant and threads, what the installation says about itself, and what importing it costs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moegrad
from moegrad import _native, contract, kernels, threads

Fresh = Callable[..., str]

CALL = """
import numpy as np, moegrad
rng = np.random.default_rng(0)
grad, x = rng.normal(size=(300, 129)).astype('f4'), rng.normal(size=(900, 129)).astype('f4')
scales = rng.normal(size=(300, 3)).astype('f4')
idx = rng.permutation(900).astype('i4')
rows, grads = moegrad.finalize_routing_v2_grad(grad, idx, x, scales)
"""
DIGEST = CALL + "import hashlib; print(hashlib.sha256(rows.tobytes() + grads.tobytes()).hexdigest())"


def test_version() -> None:
    assert moegrad.__version__ == "0.1.0" == version("moegrad")


def test_get_include_has_the_headers() -> None:
    assert list(Path(moegrad.get_include()).glob("*.h"))


def test_import_loads_no_compiler_and_no_kernels(fresh: Fresh) -> None:
    loaded = fresh("import moegrad, sys; print(*sys.modules)").split()
    banned = {"xdsl", "jinja2", "Cython", "rich", "typer", "torch", "setuptools", "matplotlib"}
    assert not banned & {name.partition(".")[0] for name in loaded}
    assert not [name for name in loaded if name.startswith(("moegrad.codegen", "moegrad.generated.cython"))]


def test_a_call_loads_no_compiler_either(fresh: Fresh) -> None:
    loaded = fresh(CALL + "import sys; print(*sys.modules)").split()
    assert not {"xdsl", "jinja2", "Cython"} & set(loaded)
    assert [name for name in loaded if name.startswith("moegrad.generated.cython.")]


@pytest.mark.parametrize("count", ["1", "2", "5", " 3 "])
def test_moegrad_num_threads_changes_no_bit(fresh: Fresh, count: str) -> None:
    assert fresh(DIGEST, MOEGRAD_NUM_THREADS=count) == fresh(DIGEST)
    said = fresh("from moegrad import threads; print(threads.limit())", MOEGRAD_NUM_THREADS=count, OMP_NUM_THREADS="7")
    assert said == f"({int(count)}, 'MOEGRAD_NUM_THREADS')"


@pytest.mark.parametrize("variable", ["MOEGRAD_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize("count", ["100000", "99999999999999999999"])
def test_a_number_of_threads_that_no_system_can_start_is_cut(fresh: Fresh, variable: str, count: str) -> None:
    said = fresh("from moegrad import threads; print(threads.limit())", **{variable: count})
    assert said == f"(1024, '{variable}')"


@pytest.mark.parametrize("value", ["0", "-2", "two", "1.5"])
def test_moegrad_num_threads_has_to_be_a_number(fresh: Fresh, value: str) -> None:
    last = fresh(CALL, fails=True, MOEGRAD_NUM_THREADS=value).splitlines()[-1]
    assert last == f"ValueError: MOEGRAD_NUM_THREADS: expected a positive integer, got {value!r}"


@pytest.mark.parametrize(("omp", "expected"), [("3", 3), ("4,2", 4), (None, None), ("", None), ("x", None)])
def test_omp_num_threads_is_second(fresh: Fresh, omp: str | None, expected: int | None) -> None:
    said = fresh("from moegrad import threads; print(threads.limit()[0])", OMP_NUM_THREADS=omp)
    assert int(said) == (expected or len(os.sched_getaffinity(0)))


def test_small_work_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_limit", (6, "test"))
    assert threads.for_bytes(threads.SMALL - 1) == 1
    assert threads.for_bytes(threads.SMALL) == 6


def test_a_forked_child_computes_on_its_own(fresh: Fresh) -> None:
    source = (
        CALL
        + """
import os
from moegrad import threads
child = os.fork()
if child == 0:
    again, _ = moegrad.finalize_routing_v2_grad(grad, idx, x, scales)
    os._exit(0 if np.array_equal(again, rows) and threads.limit() == (1, "forked child") else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), threads.limit()[0])
"""
    )
    assert fresh(source, MOEGRAD_NUM_THREADS="2") == "0 2"


@pytest.mark.parametrize("variant", kernels.usable())
def test_every_variant_gives_the_same_bits(fresh: Fresh, variant: str) -> None:
    assert fresh(DIGEST, MOEGRAD_ISA=variant) == fresh(DIGEST)
    said = fresh("import moegrad; print(moegrad.show_config('dict')['variant'])", MOEGRAD_ISA=variant)
    assert f"'used': '{variant}'" in said
    assert f"'forced': '{variant}'" in said


def test_an_unknown_variant_is_refused(fresh: Fresh) -> None:
    last = fresh(CALL, fails=True, MOEGRAD_ISA="sse9").splitlines()[-1]
    assert last == "ValueError: MOEGRAD_ISA: expected one of avx512, avx2, baseline, got 'sse9'"


def test_a_variant_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOEGRAD_ISA", "avx512")
    monkeypatch.setattr(_native, "cpu_variants", lambda: ("avx2", "baseline"))
    with pytest.raises(RuntimeError) as refused:
        kernels.usable.__wrapped__()
    expected = "MOEGRAD_ISA: expected a variant this processor runs (avx2, baseline), got 'avx512'"
    assert str(refused.value) == expected


def test_a_variant_the_build_lacks_is_refused_when_forced_and_skipped_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_native, "cpu_variants", lambda: ("avx512", "avx2", "baseline"))
    monkeypatch.setattr(kernels, "compiled", lambda variant: {"baseline": {"m"}, "avx2": {"m"}}.get(variant, set()))
    monkeypatch.delenv("MOEGRAD_ISA", raising=False)
    assert kernels.usable.__wrapped__() == ("avx2", "baseline")
    monkeypatch.setenv("MOEGRAD_ISA", "avx512")
    with pytest.raises(RuntimeError) as refused:
        kernels.usable.__wrapped__()
    assert str(refused.value) == "MOEGRAD_ISA: expected a variant of this build (avx2, baseline), got 'avx512'"


def test_a_kernel_that_was_not_built_is_named() -> None:
    with pytest.raises(ImportError, match=r"^no compiled kernel nonsense__f32 in this build of moegrad \(variants: "):
        kernels.load_module("nonsense__f32")


@pytest.mark.parametrize(
    ("key", "sizes"), [("k8__h7168", (8, 7168)), ("kany__hany", (None, None)), ("k1__hany", (1, None))]
)
def test_keys(key: str, sizes: tuple[int | None, int | None]) -> None:
    assert kernels.parse_key(key) == sizes
    with pytest.raises(ImportError, match="expected k<K>__h<H>"):
        kernels.parse_key(key + "x")


def modules() -> list[tuple[contract.Operator, str, str, str]]:
    """Every (operator, mode, D, P)."""
    tags = list(contract.FLOATS.values())
    return [
        (op, mode, data, weight)
        for op in (contract.TOKEN_UNPERMUTE_GRAD, contract.FINALIZE_ROUTING_V2_GRAD)
        for mode in op.kernels
        for data in tags
        for weight in ([""] if mode in ("plain", "padded") else tags)
    ]


@pytest.mark.parametrize(("op", "mode", "data", "weight"), modules())
def test_every_mode_and_dtype_has_its_kernels(op: contract.Operator, mode: str, data: str, weight: str) -> None:
    found = kernels.find(op, mode, data, weight)
    assert found is kernels.find(op, mode, data, weight)
    arguments = [row.name for row in (*op.inputs, *op.outputs)]
    assert op.outputs[0].name in [arguments[position] for position in found.tensors]
    assert all(isinstance(topk, int) and isinstance(hidden, int) for topk, hidden in found.specialised)


def test_show_config_as_a_dictionary() -> None:
    config = moegrad.show_config("dict")
    assert config is not None
    assert config["versions"] | {"moegrad": "0.1.0", "numpy": np.__version__} == config["versions"]
    assert config["variant"]["used"] in config["variant"]["built"]
    assert config["threads"]["limit"] == threads.limit()[0]
    assert config["cache"]["last_level_bytes"] == _native.last_level_cache_bytes()
    assert len(config["kernels"]) == 33
    assert all(count["generic"] == 1 for count in config["kernels"].values())


def test_the_cache_is_what_one_core_can_use() -> None:
    """Not what a socket has: outputs between the two would go through the cache, at half of the rate."""
    caches = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")
    known: dict[int, int] = {}
    for cache in caches:
        size = (cache / "size").read_text().strip()
        known[int((cache / "level").read_text())] = int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]
    if not known:
        pytest.skip("this system does not tell its caches in /sys")
    share = max(32 << 20, 32 * known.get(2, 0))
    assert _native.last_level_cache_bytes() == min(max(known.values()), share)


def test_show_config_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert moegrad.show_config() is None
    text = capsys.readouterr().out
    for line in (
        r"^versions +moegrad 0\.1\.0  python .*  numpy .*  ml_dtypes ",
        r"^variant +(avx512|avx2|baseline) \(widest usable\)$",
        r"^processor +\S+, runs .*baseline$",
        r"^built +.*baseline$",
        r"^threads +up to \d+ \(.*\), one below 1024 KiB$",
        r"^cache +last level \d+ KiB$",
        r"^kernels +\d+ specialised, 33 generic:$",
        r"^  finalize_routing_v2_grad__scales__bf16_f32 +\d+ specialised +1 generic$",
    ):
        assert re.search(line, text, re.MULTILINE), line


def test_show_config_of_another_kind() -> None:
    with pytest.raises(ValueError, match=r"^show_config: mode: expected 'print' or 'dict', got 'json'$"):
        moegrad.show_config("json")


def test_a_kernel_without_memory_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise MemoryError("a kernel could not allocate its scratch memory; no output was written")

    monkeypatch.setattr(_native, "launch", fails)
    with pytest.raises(MemoryError, match="no output was written"):
        moegrad.finalize_routing_v2_grad(np.ones((1, 1), np.float32), np.array([0], np.int32))
