"""Program files: what is wrong is said with file, line and column; no text gives a traceback."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moegrad.codegen.errors import MoegradError, ProgramError
from moegrad.codegen.parsing import builtin_text, function, parse_program, place, read_program
from moegrad.codegen.spec import KernelSpec
from moegrad.codegen.targets.cython.emit import emit_module

from .helpers import PROGRAMS

NAMES = ["padded", "padded_probs", "plain", "scales", "scales_bias"]
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.mlir"))
SCALES = builtin_text("scales")

LOCATED = re.compile(r"^file\.mlir:(\d+):(\d+): (.+)\n  (.*)\n  ( *)\^$")


def error_of(text: str) -> str:
    """The message of the ProgramError that the text gives."""
    with pytest.raises(ProgramError) as error:
        parse_program(text, "file.mlir")
    return str(error.value)


def without_comments(text: str) -> str:
    """A program from its first line of MLIR on."""
    return text[text.index("!D") :]


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Fails a test that hangs inside C code, such as a regular expression."""

    def fail(*_: object) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize("name", NAMES)
def test_own_programs_parse(name: str) -> None:
    func = function(parse_program(builtin_text(name), f"{name}.mlir"))
    assert func.sym_name.data == name
    assert place(func).startswith(f"{name}.mlir:")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_parse(path: Path) -> None:
    assert function(read_program(path)).sym_name.data == path.stem


def test_crlf_and_tabs_change_nothing() -> None:
    text = SCALES.replace("\n", "\r\n").replace("  %", "\t%")
    assert str(parse_program(text, "a")) == str(parse_program(SCALES, "a"))


BROKEN = {
    # old, new, line, column, message
    "unknown-op": ("moe.row_dot", "moe.row_dott", 16, 23, "Operation moe.row_dott is not registered"),
    "unknown-dialect": ("moe.row_dot", "foo.row_dot", 16, 22, "Operation foo.row_dot is not registered"),
    "arithmetic": ("moe.row_dot %x, %grad", "arith.addf %x, %grad", 16, 21, "Operation arith.addf is not registered"),
    "index-type": (
        '%expanded_row_idx: tensor<?xi32> {moe.dims = ["N"]}',
        '%expanded_row_idx: tensor<?xi64> {moe.dims = ["N"]}',
        13,
        38,
        "operand is used with type tensor<?xi32>, but has been previously used or defined with type tensor<?xi64>",
    ),
    "undefined-value": ("%dot where", "%dut where", 18, 30, "values used but not defined: [%dut]"),
    "defined-twice": ("%dot =", "%x =", 16, 3, "SSA value %x is already defined"),
    "argument-twice": ("%scales:", "%grad_y:", 8, 19, "SSA value %grad_y is already defined"),
    "used-before": (
        "  %scaled = moe.scale_rows %grad by %scales",
        "  %scaled = moe.scale_rows %x by %scales",
        12,
        3,
        "moe.scale_rows: %x is used before it is defined",
    ),
    "dtype-parameter": ('moe.dtype<"P">', 'moe.dtype<"Q">', 4, 17, '!moe.dtype: expected "D" or "P", got "Q"'),
    "dtype-without-parameter": ('moe.dtype<"P">', "moe.dtype", 5, 1, "'<' expected"),
    "no-dims": (
        '{moe.dims = ["N"]}',
        "",
        5,
        1,
        'func.func: argument 1 (%expanded_row_idx) needs moe.dims = ["R", "H"] or the like, got {}',
    ),
    "no-result-dims": (
        'moe.dims = ["R", "K"], moe.name',
        "moe.name",
        5,
        1,
        'func.func: result 1 needs moe.dims = ["R", "H"] or the like, got {moe.name = "grad_scales"}',
    ),
    "dims-of-another-rank": (
        '["N"]',
        '["N", "H"]',
        5,
        1,
        'func.func: argument 1 (%expanded_row_idx) needs moe.dims of 1 dimensions for tensor<?xi32>, got ["N", "H"]',
    ),
    "dims-no-strings": (
        '["N"]',
        "[3 : i32]",
        5,
        1,
        'func.func: argument 1 (%expanded_row_idx) needs moe.dims = ["R", "H"] or the like, got {moe.dims = [3 : i32]}',
    ),
    "dims-no-identifier": (
        '["N"]',
        '["N-1"]',
        5,
        1,
        "func.func: argument 1 (%expanded_row_idx) needs identifiers in moe.dims, got 'N-1'",
    ),
    "name-taken": (
        'moe.name = "grad_scales"',
        'moe.name = "scales"',
        5,
        1,
        "func.func: two tensors are named 'scales'; moe.name gives a tensor another name",
    ),
    "name-keyword": (
        'moe.name = "grad_scales"',
        'moe.name = "lambda"',
        5,
        1,
        "func.func: result 1 needs a name that is an identifier and no keyword, got 'lambda'",
    ),
    "name-c-type": (
        'moe.name = "grad_scales"',
        'moe.name = "double"',
        5,
        1,
        "func.func: result 1 needs a name that is an identifier and no keyword, got 'double'",
    ),
    "name-no-identifier": (
        'moe.name = "grad_scales"',
        'moe.name = "grad scales"',
        5,
        1,
        "func.func: result 1 needs a name that is an identifier and no keyword, got 'grad scales'",
    ),
    "name-only-a-number": (
        'moe.name = "grad_scales"',
        'moe.name = "_1"',
        5,
        1,
        "func.func: result 1 needs a name that is an identifier and no keyword, got '_1'",
    ),
    "name-no-string": (
        'moe.name = "grad_scales"',
        "moe.name = @grad",
        5,
        1,
        "func.func: result 1 needs a string as moe.name, got @grad",
    ),
    "name-of-a-dimension": (
        'moe.name = "grad_scales"',
        'moe.name = "K"',
        5,
        1,
        "func.func: 'K' names a tensor and a dimension",
    ),
    "function-name": (
        "@scales",
        "@Scales",
        5,
        1,
        "func.func: expected a lower-case identifier as its name, got 'Scales'",
    ),
    "scatter-extent": (
        'rows "M"',
        'rows "Q"',
        13,
        3,
        "moe.scatter_rows: 'extent' must be one of R, H, N, M, K, got \"Q\"",
    ),
    "active-extent": ('in "M"', 'in "E"', 17, 3, "moe.active_slots: 'extent' must be one of R, H, N, M, K, got \"E\""),
    "tokens": (
        'moe.name = "grad_scales"}) {',
        'moe.name = "grad_scales"}) attributes {moe.tokens = "T"} {',
        5,
        1,
        'func.func: moe.tokens must be one of R, H, N, M, K, got "T"',
    ),
    "tokens-no-string": (
        'moe.name = "grad_scales"}) {',
        'moe.name = "grad_scales"}) attributes {moe.tokens = 3 : i64} {',
        5,
        1,
        "func.func: moe.tokens must be one of R, H, N, M, K, got 3 : i64",
    ),
    "return-order": (
        "func.return %out, %gscale : tensor<?x?x!D>, tensor<?x?x!P>",
        "func.return %gscale, %out : tensor<?x?x!P>, tensor<?x?x!D>",
        19,
        3,
        "func.return: Expected arguments to have the same types as the function output types: "
        'expected [tensor<?x?x!moe.dtype<"D">>, tensor<?x?x!moe.dtype<"P">>], '
        'got [tensor<?x?x!moe.dtype<"P">>, tensor<?x?x!moe.dtype<"D">>]',
    ),
    "return-count": (
        "func.return %out, %gscale : tensor<?x?x!D>, tensor<?x?x!P>",
        "func.return %out : tensor<?x?x!D>",
        19,
        3,
        "func.return: Expected arguments to have the same types as the function output types: "
        'expected [tensor<?x?x!moe.dtype<"D">>, tensor<?x?x!moe.dtype<"P">>], got [tensor<?x?x!moe.dtype<"D">>]',
    ),
    "no-return": (
        "func.return %out, %gscale : tensor<?x?x!D>, tensor<?x?x!P>",
        "",
        18,
        3,
        "func.func: the body must end in func.return, got moe.select_slots",
    ),
}


@pytest.mark.parametrize("case", sorted(BROKEN))
def test_an_error_has_its_place(case: str) -> None:
    old, new, line, column, message = BROKEN[case]
    assert old in SCALES
    text = SCALES.replace(old, new, 1)
    found = LOCATED.match(error_of(text))
    assert found is not None, error_of(text)
    assert (int(found[1]), int(found[2]), found[3]) == (line, column, message)
    assert found[4] == text.split("\n")[line - 1]
    assert len(found[5]) == column - 1


def test_a_bad_rank_is_said_of_the_operation() -> None:
    text = without_comments(builtin_text("plain")).replace("tensor<?x?x!D>", "tensor<?x?x?x!D>")
    assert error_of(text).split("\n")[0] == (
        "file.mlir:5:3: moe.repeat_rows: 'rows' (%grad_y) must be a tensor of rank 2, "
        'got tensor<?x?x?x!moe.dtype<"D">>'
    )


def test_all_independent_errors_are_reported_in_order() -> None:
    text = without_comments(SCALES).replace('!moe.dtype<"D">', "f64")
    lines = [line for line in error_of(text).split("\n") if line.startswith("file.mlir")]
    assert [line.split(": ")[1] for line in lines] == [
        "moe.repeat_rows",
        "moe.scale_rows",
        "moe.scatter_rows",
        "moe.gather_rows",
        "moe.row_dot",
    ]
    assert lines[0] == (
        "file.mlir:9:3: moe.repeat_rows: 'rows' (%grad_y) must be of element type f16, bf16, f32 or !moe.dtype, "
        "got tensor<?x?xf64>"
    )


IDENTITY = """func.func @f(%x: TYPE {moe.dims = ["R", "H"]}) -> (TYPE {moe.dims = ["R", "H"]}) {
  func.return %x : TYPE
}
"""


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("i32", "must be a tensor or a memref, got i32"),
        ("tensor<*xf32>", "must be a tensor or a memref, got tensor<*xf32>"),
        ("tensor<?x?xf64>", "must be of element type f16, bf16, f32, !moe.dtype or i32, got tensor<?x?xf64>"),
        ("tensor<?x?xi64>", "must be of element type f16, bf16, f32, !moe.dtype or i32, got tensor<?x?xi64>"),
        ("tensor<?xf32>", 'needs moe.dims of 1 dimensions for tensor<?xf32>, got ["R", "H"]'),
    ],
)
def test_a_signature_that_cannot_be_lowered_is_refused(type_: str, message: str) -> None:
    first = error_of(IDENTITY.replace("TYPE", type_)).split("\n")[0]
    assert first == f"file.mlir:1:1: func.func: argument 0 (%x) {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: Could not parse entire input!"),
        ("// only a comment\n", "2:1: Could not parse entire input!"),
        ("module {}", "1:1: builtin.module: a program is one func.func, got 0 operations"),
        (
            "func.func private @f() -> ()\nfunc.func private @g() -> ()",
            "2:1: builtin.module: a program is one func.func, got 2 operations",
        ),
        ("func.func private @f()", "1:1: func.func: the body must be one block, got 0"),
        ("func.func @f() { func.return }", "1:1: func.func: expected at least one output, got none"),
        ("func.func @f() { func.return\n^b:\n func.return }", "1:1: func.func: the body must be one block, got 2"),
        ('"', "1:1: End of file reached before closing string literal."),
        ("\0", "1:1: Unexpected character: \0"),
        (
            '"func.func"() <{sym_name = "f", function_type = () -> (), arg_attrs = [{}]}> '
            '({ "func.return"() : () -> () }) : () -> ()',
            "1:1: func.func: arg_attrs must hold 0 dictionaries, got 1",
        ),
    ],
    ids=["empty", "comment", "module", "two", "declaration", "no-output", "two-blocks", "quote", "nul", "arg-attrs"],
)
def test_what_is_no_program_is_refused(text: str, message: str) -> None:
    assert error_of(text).split("\n  ")[0] == f"file.mlir:{message}"


def test_sizes_that_contradict_each_other_are_refused() -> None:
    text = IDENTITY.replace("TYPE", "tensor<?x8xf32>").replace(
        ") -> (tensor<?x8xf32>", ', %y: tensor<?x9xf32> {moe.dims = ["R", "H"]}) -> (tensor<?x8xf32>'
    )
    assert error_of(text).split("\n")[0] == (
        "file.mlir:1:1: func.func: argument 1 (%y): expected H = 8, got tensor<?x9xf32>"
    )


def test_a_string_that_nobody_closes_does_not_hang() -> None:
    text = SCALES.replace("moe.gather_rows %", 'moe.gather_ro"s %', 1)
    with time_limit(5):
        assert "End of file reached before closing string literal." in error_of(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_off_at_any_line_is_located(name: str) -> None:
    text = builtin_text(name)
    lines = text.splitlines(keepends=True)
    for count in range(len(lines)):
        for cut in ("".join(lines[:count]), "".join(lines[:count]).rstrip("\n")):
            message = error_of(cut)
            found = LOCATED.match(message)
            assert found is not None, message
            assert int(found[1]) <= count + 1, message


def test_a_file_cut_off_at_any_character_is_located() -> None:
    text = without_comments(builtin_text("plain")).rstrip()
    for end in range(len(text)):
        assert LOCATED.match(error_of(text[:end])), end


TEXTS = [*(without_comments(builtin_text(name)) for name in NAMES), *(program.text for program in PROGRAMS)]
TOKEN = re.compile(r'"[^"]*"|[%!@]?[\w.]+|->|[^\s\w]')
TOKENS = sorted({token for text in TEXTS for token in TOKEN.findall(text)})


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A program with one character or one word changed, or cut off."""
    text: str = draw(st.sampled_from(TEXTS))
    kind = draw(st.sampled_from(["cut", "delete", "replace", "insert", "word", "swap"]))
    at = draw(st.integers(0, len(text) - 1))
    if kind == "cut":
        return text[:at]
    if kind in ("delete", "replace", "insert"):
        new = "" if kind == "delete" else draw(st.characters(exclude_categories=["Cs"]))
        return f"{text[:at]}{new}{text[at + (kind != 'insert') :]}"
    words = list(TOKEN.finditer(text))
    word = draw(st.sampled_from(words))
    new = draw(st.sampled_from(TOKENS if kind == "word" else [each.group() for each in words]))
    return f"{text[: word.start()]}{new}{text[word.end() :]}"


def check_mutation(text: str) -> None:
    """Either a kernel, or an error for the user."""
    with time_limit(10):
        try:
            program = parse_program(text, "file.mlir")
        except ProgramError as error:
            assert LOCATED.match(str(error).split("\nfile.mlir")[0]), str(error)  # noqa: PT017
            return
        spec = KernelSpec(function(program).sym_name.data, "bf16", "f32", 2, 64)
        try:
            emit_module(program, [spec], "command", python=True)
        except MoegradError as error:
            assert str(error)  # noqa: PT017


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutations())
def test_no_change_of_a_program_gives_a_traceback(text: str) -> None:
    check_mutation(text)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutations())
def test_no_change_of_a_program_gives_a_traceback_in_a_long_campaign(text: str) -> None:
    check_mutation(text)


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.mlir"
    with pytest.raises(ProgramError) as error:
        read_program(path)
    assert str(error.value).startswith(f"{path}: cannot read the program: ")
    assert "No such file" in str(error.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="cannot read the program"):
        read_program(tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00m", b"\x7fELF\x02\x01\x01\x00\x80\x81"], ids=["utf-16", "elf"])
def test_a_binary_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "binary.mlir"
    path.write_bytes(content)
    with pytest.raises(ProgramError, match="cannot read the program: 'utf-8' codec can't decode"):
        read_program(path)
