"""Device projects as text: every file, equal bytes, tables that agree with each other, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from moegrad.codegen.arguments import ALWAYS, INTERFACES
from moegrad.codegen.chips import FAMILIES
from moegrad.codegen.errors import SpecError
from moegrad.codegen.operators import OPERATORS
from moegrad.codegen.targets.project.emit import Project, project_spec
from moegrad.codegen.targets.project.launch import LaunchProject

TOKEN_FIRST_PHASE = (
    "aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize("
    "const aclTensor *permuteTokens, const aclTensor *unpermutedTokensGrad, const aclTensor *sortedIndices, "
    "const aclTensor *probsOptional, bool paddedMode, const aclIntArray *restoreShapeOptional, "
    "const aclTensor *permutedTokensGradOut, const aclTensor *probsGradOut, "
    "uint64_t *workspaceSize, aclOpExecutor **executor);"
)
FINALIZE_FIRST_PHASE = (
    "aclnnStatus aclnnMoeFinalizeRoutingV2GradGetWorkspaceSize("
    "const aclTensor *gradY, const aclTensor *expandedRowIdx, const aclTensor *expandedXOptional, "
    "const aclTensor *scalesOptional, const aclTensor *expertIdxOptional, const aclTensor *biasOptional, "
    "int64_t dropPadMode, int64_t activeNum, int64_t expertNum, int64_t expertCapacity, "
    "const aclTensor *gradExpandedXOut, const aclTensor *gradScalesOut, "
    "uint64_t *workspaceSize, aclOpExecutor **executor);"
)


@cache
def project(soc: str = "ascend910b", model: str = "", data: str = "bf16", weight: str = "f32") -> Project:
    return Project(project_spec(soc, model, 0, 0, data, weight))


@cache
def launch_project() -> LaunchProject:
    return LaunchProject(project_spec("ascend950", "", 4, 128, "bf16", "f32"))


def one_line(text: str) -> str:
    return re.sub(r"\( ", "(", re.sub(r"\s+", " ", text))


def sources(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    for path, text in files.items():
        if path.endswith((".h", ".cpp", ".asc")):
            yield path, text


@pytest.mark.parametrize("soc", FAMILIES)
def test_a_project_has_every_file_of_an_operator_package(soc: str) -> None:
    files = project(soc).files
    wanted = ["CMakeLists.txt", "CMakePresets.json", "build.sh", "README.md"]
    wanted += ["op_host/CMakeLists.txt", "op_kernel/CMakeLists.txt", "tests/CMakeLists.txt", "host/host.cmake"]
    for name in OPERATORS:
        wanted += [f"op_host/moegrad_{name}_{part}.cpp" for part in ("def", "infershape", "tiling")]
        wanted += [f"op_kernel/moegrad_{name}.cpp", f"op_api/aclnn_moe_{name}.cpp", f"tests/test_{name}.cpp"]
        wanted += [f"op_api/include/aclnnop/aclnn_moe_{name}.h", f"common/moegrad_{name}_contract.h"]
    assert set(wanted) <= set(files)
    assert f'AddConfig("{soc}")' in files["op_host/moegrad_token_unpermute_grad_def.cpp"]
    presets = json.loads(files["CMakePresets.json"])
    assert presets["configurePresets"][0]["cacheVariables"]["ASCEND_COMPUTE_UNIT"]["value"] == soc


def test_the_prototypes_are_those_of_the_operator_pages() -> None:
    files = project().files
    token = one_line(files["op_api/include/aclnnop/aclnn_moe_token_unpermute_grad.h"])
    finalize = one_line(files["op_api/include/aclnnop/aclnn_moe_finalize_routing_v2_grad.h"])
    assert TOKEN_FIRST_PHASE in token
    assert FINALIZE_FIRST_PHASE in finalize
    for name, text in (("aclnnMoeTokenUnpermuteGrad", token), ("aclnnMoeFinalizeRoutingV2Grad", finalize)):
        second = "(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);"
        assert f"aclnnStatus {name}{second}" in text


@pytest.mark.parametrize("name", OPERATORS)
def test_definition_entry_and_description_have_the_same_order(name: str) -> None:
    """Inputs and outputs of the definition are the parameters of the kernel's entry, one for one."""
    files, face = project().files, INTERFACES[name]
    definition = files[f"op_host/moegrad_{name}_def.cpp"]
    rows = [row.name for row in (*face.inputs, *face.outputs)]
    assert re.findall(r'->(?:Input|Output)\("(\w+)"\)', definition) == rows
    assert re.findall(r'->Attr\("(\w+)"\)', definition) == [row.name for row in face.attributes]
    required = [row.needed == ALWAYS for row in (*face.inputs, *face.outputs)]
    assert [need == "REQUIRED" for need in re.findall(r"ParamType\((\w+)\)", definition)] == required
    entry = one_line(files[f"op_kernel/moegrad_{name}.cpp"].split('extern "C"')[1].split("{")[0])
    parameters = [
        re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", each) for each in re.findall(r"GM_ADDR (\w+)", entry)
    ]
    assert parameters == [*rows, "workspace", "tiling"]


def test_every_pair_of_dtypes_is_a_column() -> None:
    definition = project(data="", weight="").files["op_host/moegrad_token_unpermute_grad_def.cpp"]
    lists = re.findall(r"std::vector<ge::DataType> (data|weight)\{(.*?)\}", definition, re.DOTALL)
    columns = [re.findall(r"DT_\w+", text) for _, text in lists]
    assert len(set(zip(*columns, strict=True))) == 9
    assert "index(9, ge::DT_INT32)" in definition


@pytest.mark.parametrize("soc", FAMILIES)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_key_of_the_tiling_function_has_its_branch(soc: str, name: str) -> None:
    files = project(soc, "deepseek-v3").files
    tiling, entry = files[f"op_host/moegrad_{name}_tiling.cpp"], files[f"op_kernel/moegrad_{name}.cpp"]
    keys = re.findall(r"^        \{(\d+), k\w+", tiling, re.MULTILINE)
    branches = re.findall(r"if \(TILING_KEY_IS\((\d+)\)\)", entry)
    assert sorted(branches) == sorted(set(keys))
    assert len(branches) == 2 * len(OPERATORS[name].modes)
    assert "else {" not in entry
    registered = re.findall(r"TILING_KEY_VAR == (\d+)", entry)
    assert sorted(registered) == sorted(branches)[1:]


def test_kernels_of_a_shape_come_before_those_of_any() -> None:
    tiling = project(model="deepseek-v3").files["op_host/moegrad_finalize_routing_v2_grad_tiling.cpp"]
    shapes = re.findall(r"^        \{\d+, k\w+, ge::\w+, [-\w:]+, (\w+), (\w+),$", tiling, re.MULTILINE)
    assert shapes == [("8", "7168")] * 3 + [("kAny", "kAny")] * 3


def test_on_950_the_common_modes_run_as_the_other_operator() -> None:
    text = one_line(project("ascend950").files["op_api/aclnn_moe_token_unpermute_grad.cpp"])
    call = (
        "aclnnMoegradFinalizeRoutingV2GradGetWorkspaceSize(unpermutedTokensGrad, sortedIndices, permuteTokens, "
        "probsOptional, nullptr, nullptr, 0, rows, 0, 0, permutedTokensGradOut, probsGradOut, workspaceSize, executor)"
    )
    assert call in text
    assert "Forwarded" not in project("ascend910b").files["op_api/aclnn_moe_token_unpermute_grad.cpp"]
    assert "op_api/moegrad_forwarded.h" not in project("ascend910b").files


def test_the_same_spec_gives_the_same_bytes() -> None:
    spec = project_spec("ascend910_93", "", 0, 0, "f16", "f16")
    assert Project(spec).files == Project(spec).files


@pytest.mark.parametrize("files", [project().files, project("ascend950", "mixtral-8x7b").files, launch_project().files])
def test_files_name_no_machine_and_keep_to_the_line_length(files: dict[str, str]) -> None:
    for path, text in files.items():
        assert "/tmp/" not in text, path
        assert "TODO" not in text, path
    for path, text in sources(files):
        code = [line for line in text.split("\n") if not line.startswith("//") and '"' not in line]
        assert max(map(len, code)) <= 120, path


def test_included_files_are_in_the_project() -> None:
    outside = {"kernel_operator.h", "objects.h", "oprun.h", "kernel_unit.h"}
    for made in (project().files, launch_project().files):
        names = {Path(path).name for path in made}
        for path, text in sources(made):
            for included in re.findall(r'#include "([^"]+)"', text):
                known = Path(included).name in names | outside
                assert known or included.split("/")[0] in ("acl", "aclnn", "register", "tiling", "torch_npu"), (
                    path,
                    included,
                )


def test_a_launch_project_has_each_kernel_once() -> None:
    files = launch_project().files
    included = re.findall(r'#include "kernels/(.+)\.asc"', files["moegrad_torch.asc"])
    assert len(included) == len(set(included)) == 10
    assert all(f"kernels/{name}.asc" in files for name in included)
    assert "<<<" in files[f"kernels/{included[0]}.asc"]
    assert 'set(CMAKE_ASC_ARCHITECTURES "dav-3510"' in files["CMakeLists.txt"]
    order = [
        files["CMakeLists.txt"].index(word) for word in ("CMAKE_ASC_ARCHITECTURES", "find_package(ASC", "project(")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("ascend910b1", "", 0, 0),
            "--soc: expected one of ascend910b, ascend910_93, ascend950, the names packages are",
        ),
        (("ascend310p", "", 0, 0), "chip: ascend310p has no DataCopyPad"),
        (("nope", "", 0, 0), "chip: expected one of ascend910b"),
        (("ascend910b", "mixtral-8x7b", 2, 64), "--model: give it, or --topk with --hidden, not both"),
        (("ascend910b", "", 8, 0), "--topk 8: needs --hidden too"),
        (("ascend910b", "", 0, 64), "--hidden 64: needs --topk too"),
        (("ascend910b", "gpt-9", 0, 0), "model: expected one of llama-4-scout"),
        (("ascend910b", "", 513, 64), "--topk: ascend910b takes at most 512 slots a token, got 513"),
    ],
)
def test_what_a_project_cannot_be_made_for(options: tuple[str, str, int, int], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        project_spec(*options, "", "")
