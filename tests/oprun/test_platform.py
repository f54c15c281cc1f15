"""What host code learns of the chip, and what shapes answer beyond their rank."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .package import FLAGS, SANITIZERS

ASK = """
#include "exe_graph/runtime/tiling_context.h"
#include "tiling/platform/platform_ascendc.h"
#include <cstdio>

int main()
{
    using namespace platform_ascendc;
    fe::PlatFormInfos infos;
    for (fe::PlatFormInfos* given : {&infos, static_cast<fe::PlatFormInfos*>(nullptr)}) {
        const PlatformAscendC chip(given);
        uint64_t ub = 1;
        uint64_t l1 = 1;
        chip.GetCoreMemSize(CoreMemType::UB, ub);
        chip.GetCoreMemSize(CoreMemType::L1, l1);
        std::printf("%u %u %u %lu %lu %u %d\\n", chip.GetCoreNum(), chip.GetCoreNumAiv(), chip.GetCoreNumAic(), ub, l1,
                    chip.GetLibApiWorkSpaceSize(), static_cast<int>(chip.GetSocVersion()));
    }
    gert::Shape shape{2, 3};
    std::printf("%d %d %ld", shape.GetDim(2) == gert::Shape::kInvalidDimValue, shape[1] == 3, shape.GetShapeSize());
    shape.SetDimNum(1);
    shape.SetDimNum(2);
    std::printf(" %d", shape.GetDim(1) == gert::Shape::kInvalidDimValue);
    shape.SetDim(1, int64_t{1} << 62);
    std::printf(" %d", shape.AppendDim(4).GetShapeSize() == gert::Shape::kInvalidDimValue);
    shape.SetScalar();
    std::printf(" %ld %d\\n", shape.GetShapeSize(), shape == gert::Shape{});
}
"""


@pytest.mark.parametrize(
    ("chip", "answer"),
    [
        ("ascend910b", "48 48 24 196352 0 16777216 1"),
        ("ascend910b4", "40 40 20 196352 0 16777216 1"),
        ("ascend910_93", "48 48 24 196352 0 16777216 1"),
        ("ascend950pr_957b", "56 56 28 253952 0 16777216 4"),
    ],
)
def test_platform_and_shapes(tmp_path: Path, chip: str, answer: str) -> None:
    source, program = tmp_path / "ask.cpp", tmp_path / "ask"
    source.write_text(ASK)
    command = ["g++", *FLAGS, *SANITIZERS, f"-DMOEGRAD_CHIP={chip}", str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=120)
    lines = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    unknown = f"0 0 0 0 0 0 {answer.split()[-1]}"
    assert lines == [answer, unknown, "1 1 6 1 1 1 1"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("attrs.GetAttrPointer<int32_t>(0);", "an attribute is read as bool, int64_t or a vector of int64_t"),
        ("attrs.GetAttrPointer<gert::TypedContinuousVector<float>>(0);", "a list attribute holds int64_t"),
        ("context.GetTilingData<std::string>();", "tiling data is plain data"),
    ],
)
def test_what_does_not_compile(code: str, message: str) -> None:
    source = (
        '#include "exe_graph/runtime/tiling_context.h"\n'
        "void Use([[maybe_unused]] gert::TilingContext& context, [[maybe_unused]] const gert::RuntimeAttrs& attrs)\n"
        f"{{ {code} }}\n"
    )
    done = subprocess.run(
        ["g++", *FLAGS, "-fsyntax-only", "-x", "c++", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    assert message in done.stderr


def test_kernel_and_host_names_of_types_do_not_meet() -> None:
    done = subprocess.run(
        ["g++", *FLAGS, "-DDT_FLOAT=0", "-fsyntax-only", "-include", "graph/types.h", "-x", "c++", "-"],
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "graph/types.h is for host code" in done.stderr
