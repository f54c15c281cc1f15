"""The host ACL refuses every misuse with its public code and a text, and leaves nothing behind; under sanitizers."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
HOSTMODEL = HERE.parents[1] / "hostmodel"
INCLUDE = HOSTMODEL / "include"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]
CXX = ["g++", "-std=c++17", "-O0", *WARNINGS, *SANITIZERS, "-fPIC", f"-I{INCLUDE}", f"-I{HOSTMODEL / 'acl'}"]

CASES = [
    name for file in sorted(HERE.glob("*_cases.cpp")) for name in re.findall(r"^CASE\((\w+)\)", file.read_text(), re.M)
]
NOISY = {"leftovers", "exit_without_end", "log", "reset_releases_what_is_left"}  # with tests of what they print
MAY_PRINT = re.compile(r"host ACL: (aclrtResetDevice\(\d\) releases|not released:|damaged:) .*")


def compiled(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library and the program of cases."""
    folder = tmp_path_factory.mktemp("hostacl")
    cases = folder / "cases.cpp"  # one translation unit: the headers are compiled once
    cases.write_text("".join(f'#include "{file}"\n' for file in sorted(HERE.glob("*.cpp"))))

    def compile_one(source: Path) -> str:
        target = str(folder / f"{source.stem}.o")
        compiled([*CXX, "-DMOEGRAD_CHIP=ascend910b", f"-I{HERE}", "-c", str(source), "-o", target])
        return target

    with ThreadPoolExecutor(2) as pool:
        program, *library = pool.map(compile_one, [cases, *sorted((HOSTMODEL / "acl").glob("*.cpp"))])
    compiled(["g++", "-shared", *SANITIZERS, *library, "-o", str(folder / "libhostacl.so")])
    link = [f"-L{folder}", "-lhostacl", "-Wl,-rpath,$ORIGIN"]
    compiled(["g++", *SANITIZERS, program, *link, "-o", str(folder / "cases")])
    return folder


def run(program: Path, *arguments: str, **environment: str) -> tuple[str, list[str]]:
    """Output and lines on stderr of a program that succeeds."""
    done = subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr.splitlines()


@pytest.mark.parametrize("case", [case for case in CASES if case not in NOISY])
def test_case(build: Path, case: str) -> None:
    output, errors = run(build / "cases", case)
    assert output == ""
    assert [line for line in errors if not MAY_PRINT.fullmatch(line)] == []


def test_leftovers_are_listed(build: Path) -> None:
    _, errors = run(build / "cases", "leftovers")
    assert errors == [
        "host ACL: not released: default stream of device 0: 1 task that nobody waited for",
        "host ACL: not released: device memory #2: 600 bytes",
        "host ACL: not released: host memory #3: 7 bytes",
        "host ACL: not released: stream #4: 1 task that nobody waited for",
        "host ACL: not released: tensor #5: 2x3 of type 0",
        "host ACL: not released: int array #6: 2 numbers",
        "host ACL: not released: executor #7 of aclnnThing: workspace of 64 bytes, second phase never called",
        "host ACL: not released: event #8",
        "host ACL: not released: context #9",
    ]


def test_exit_without_finalize_is_noted(build: Path) -> None:
    _, errors = run(build / "cases", "exit_without_end")
    assert errors == [
        "host ACL: the process ends without aclFinalize",
        "host ACL: not released: device memory #2: 12 bytes",
    ]


def test_reset_notes_what_it_releases(build: Path) -> None:
    _, errors = run(build / "cases", "reset_releases_what_is_left")
    assert errors == [
        "host ACL: aclrtResetDevice(0) releases event #4",
        "host ACL: aclrtResetDevice(0) releases device memory #2: 40 bytes",
    ]


def test_log_levels(build: Path) -> None:
    _, errors = run(build / "cases", "log")
    assert len(errors) == 1
    assert re.fullmatch(r"\[ERROR\] .*lifecycle_cases\.cpp:\d+ log: no rows", errors[0])
    _, errors = run(build / "cases", "log", ASCEND_GLOBAL_LOG_LEVEL="1")
    assert [line.rpartition(" log: ")[2] for line in errors] == ["3 rows", "no rows"]


def test_a_client_in_c(build: Path) -> None:
    flags = ["-std=c11", "-pedantic", "-Wstrict-prototypes", *WARNINGS, *SANITIZERS, f"-I{INCLUDE}"]
    link = [f"-L{build}", "-lhostacl", "-Wl,-rpath,$ORIGIN"]
    compiled(["gcc", *flags, str(HERE / "client.c"), *link, "-o", str(build / "client")])
    assert run(build / "client") == ("36 4 Ascend910B1\n", [])


HEADERS = sorted(
    str(file.relative_to(INCLUDE)) for folder in ("acl", "aclnn") for file in (INCLUDE / folder).rglob("*.h")
)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_headers_stand_alone(language: str) -> None:
    name = {"c": "ACL_FORMAT_ND", "c++": "aclFormat::ACL_FORMAT_ND"}[language]
    standard = {"c": "-std=c11", "c++": "-std=c++17"}[language]
    for header in HEADERS:
        source = f'#include "{header}"\n#include "acl/acl.h"\naclFormat format = {name};\n'
        done = subprocess.run(
            ["gcc", "-x", language, standard, "-pedantic", *WARNINGS, f"-I{INCLUDE}", "-fsyntax-only", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("chip", "soc"),
    [
        ("ascend910b4", "Ascend910B4"),
        ("ascend910_93", "Ascend910_9391"),
        ("ascend950", "Ascend950PR_958b"),
        ("ascend950pr_957b", "Ascend950PR_957b"),
    ],
)
def test_soc_names(tmp_path: Path, chip: str, soc: str) -> None:
    main = tmp_path / "main.cpp"
    main.write_text('#include "acl/acl.h"\n#include <cstdio>\nint main() { std::puts(aclrtGetSocName()); }\n')
    flags = ["-std=c++17", *WARNINGS, f"-DMOEGRAD_CHIP={chip}", f"-I{INCLUDE}"]
    compiled(["g++", *flags, str(main), str(HOSTMODEL / "acl" / "soc.cpp"), "-o", str(tmp_path / "main")])
    assert run(tmp_path / "main") == (f"{soc}\n", [])
