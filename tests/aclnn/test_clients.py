"""Clients written for a device: they compile as they are and print the expected numbers, under sanitizers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from moegrad.codegen.targets.project.hostlib import HostLibrary

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "aclnn"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]
SWITCHES_STACKS = "ASan doesn't fully support makecontext/swapcontext"  # which the host model runs its pipes with
CXX = ["g++", "-std=c++17", *WARNINGS]
C = ["gcc", "-std=c11", "-pedantic", *WARNINGS]

EXPECTED = {
    "finalize_routing_v2_grad": ["grad_expanded_x: 0.25 0.5 0 0 0 0 6 8", "grad_scales: 6 53 544 14"],
    "token_unpermute_grad": ["permuted_tokens_grad: 0.5 0.5 0.75 0.75 4 4 12 12", "probs_grad: 0 3 22 0 21 45"],
}


def run(compiler: list[str], source: Path, library: HostLibrary, folder: Path) -> tuple[int, list[str], list[str]]:
    """Builds a client; its exit code and the lines of its output and of stderr."""
    program = folder / source.stem
    command = [*compiler, *SANITIZERS, *library.cflags, str(source), "-o", str(program), *library.libs]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120, env=environment)
    errors = [line for line in done.stderr.splitlines() if SWITCHES_STACKS not in line]
    return done.returncode, done.stdout.splitlines(), errors


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_examples(name: str, library: HostLibrary, tmp_path: Path) -> None:
    assert run(CXX, EXAMPLES / f"{name}.cpp", library, tmp_path) == (0, EXPECTED[name], [])


def test_every_example_is_run() -> None:
    assert sorted(file.stem for file in EXAMPLES.iterdir()) == sorted(EXPECTED)


def test_a_client_in_c(library: HostLibrary, tmp_path: Path) -> None:
    assert run(C, HERE / "client.c", library, tmp_path) == (
        0,
        [
            "permuted_tokens_grad: 1.5 2 2 4 1 2 0 0",
            "probs_grad: 7 6 9 0",
            "permuted_tokens_grad: 3 4 1 2 1 2 0 0",
        ],
        [],
    )


EDITS = {  # of an example: what is written instead, and what the client says then
    "a wrong number": ("{6, 53, 544, 14}", "{6, 53, 544, 15}", ["grad_scales: 6 53 544 14 (wrong)"], []),
    "a refusal": (
        "drop_pad_mode = 1",
        "drop_pad_mode = 2",
        [],
        ["gave 561002: aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize: dropPadMode: expected 0 (dropless) or 1"],
    ),
    "no wait": ("    CHECK(aclrtSynchronizeStream(stream.handle));\n", "", ["(wrong)"], []),
}


@pytest.mark.parametrize("edit", sorted(EDITS))
def test_what_a_client_sees_of_its_mistakes(edit: str, library: HostLibrary, tmp_path: Path) -> None:
    before, after, output, errors = EDITS[edit]
    text = (EXAMPLES / "finalize_routing_v2_grad.cpp").read_text()
    assert text.count(before) == 1
    source = tmp_path / "edited.cpp"
    source.write_text(text.replace(before, after))
    code, got_output, got_errors = run(CXX, source, library, tmp_path)
    assert code == 1
    for expected, got in ((output, got_output), (errors, got_errors)):
        assert all(any(part in line for line in got) for part in expected), got
