"""Names in an Ascend C kernel: one for each tensor and each size, none of which means something else there.

A tensor's name is the stem of a family: its place in global memory, its queues, its blocks and sums are
named after it. A name that would meet a word of C++, of the interface or of the kernel's own text, or a
member of another family, gets a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ..naming import camel
from ..signature import HIDDEN, TOPK, signature, size_symbols

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t std assert errno linux unix NULL
include define undef ifdef ifndef endif error pragma
""".split()

_INTERFACE = """
AscendC ReinterpretCast GetValue SetValue SetGlobalBuffer InitBuffer Get AllocTensor FreeTensor EnQue DeQue
GetTPipePtr FetchEventID GetBlockIdx GetBlockNum SetFlag WaitFlag PipeBarrier SyncAll HardEvent RoundMode TPosition
TPipe TQue TQueBind TBuf LocalTensor GlobalTensor DataCopy DataCopyPad DataCopyExtParams DataCopyPadExtParams
Cast Muls Mul Add Sub Duplicate WholeReduceSum VECIN VECOUT VECCALC CAST_NONE CAST_RINT
S_MTE2 V_MTE2 MTE2_S MTE2_V S_V V_S V_MTE3 PIPE_V PIPE_S PIPE_M PIPE_MTE1 PIPE_MTE2 PIPE_MTE3 PIPE_ALL
GM_ADDR half bfloat16_t event_t
REGISTER_TILING_DEFAULT KERNEL_TASK_TYPE_DEFAULT KERNEL_TASK_TYPE KERNEL_TYPE_AIV_ONLY GET_TILING_DATA
GET_TILING_DATA_WITH_STRUCT TILING_KEY_IS MOEGRAD_HOST_MODEL MOEGRAD_HOSTMODEL_KERNEL MOEGRAD_CHIP
moegrad kernel_operator cstdint
""".split()

_MEMBERS = """
Kernel Span TilingData Sizes FillTiling Solve SolveFlight CeilDiv RoundUp Min Max Sync
Init Process LoadBlock StoreBlock ProcessGroup CopyInTokens ComputeTokens AwaitTokens CopyOutTokens CopyInSlots
ComputeSlots CopyOutSlots SumRow CopyRowIn CopyRowOut CopyRowsIn
TOPK_LIMIT UB_BYTES UB_LIMIT TOKEN_BYTES SLOT_BYTES ROW_BYTES BLOCK_BYTES BLOCK_TOKEN_BYTES FIXED_BYTES FLIGHT_BYTES
WANTED_BYTES BLOCK_SLOTS ROW_ELEMENTS TILE_ELEMENTS MAX_COPY_BLOCKS
topk hidden tile tiles pitch columns blockTokens blockTokensUp blockSlots groupTokens chunkSlots mapRows
blockCount tokensPerCore tokensLeft zeroFill firstToken lastToken blockFirst tokensInBlock namedRows namedRowsBuffer
zerosF16 zerosBF16 zerosF32 zerosF16Buffer zerosBF16Buffer zerosF32Buffer
at token tokens k slot slots place column elements
""".split()

_ELSEWHERE = """
pipe tiling tilingData kernel workspace sizes cores ubBytes everyRowNamed stream problem blocks values
core row rows firstRow lastRow zeros first count i begin end capacity
to from copy pad bytes gap id event sum products start
a b value step room wanted tokenBytes slotBytes fit group chunk block oneRow largest
""".split()

_WORKING = [f"work{tag}{number}" for tag in ("", "F16x", "BF16x") for number in ("", *range(2, 100))]

_IN_LOOPS = frozenset([*_CPP, *_INTERFACE, *_MEMBERS, *_WORKING, *(f"{name}Buffer" for name in _WORKING)])

RESERVED = _IN_LOOPS | frozenset(_ELSEWHERE)
"""Words of C++ and of the interface, and all that a kernel's own text names: members, functions, fields, constants,
parameters, local variables."""

SIZE_WORDS = {TOPK: "topk", HIDDEN: "hidden"}
"""Symbols that have a word for a name; the others stand for themselves."""

SUFFIXES = ("Gm", "Block", "F32", "Sums", "Part", "In", "Out", "Through", "Rows", "Buffer")
"""What is put behind the name of a tensor for what belongs to it."""

_FAMILY = re.compile(rf"(?:(?:{'|'.join(SUFFIXES)})\d*)*")
_ENDS_IN_SUFFIX = re.compile(rf"(?:{'|'.join(SUFFIXES)})\d*$")


def unique(name: str, taken: Iterable[str]) -> str:
    """`name`, or with the first number from 2 that is free."""
    used = set(taken)
    number, found = 1, name
    while found in used:
        number += 1
        found = f"{name}{number}"
    return found


@dataclass(frozen=True)
class KernelNames:
    """The name map of one kernel, built once from its signature."""

    tensors: tuple[str, ...]
    """Stem of each tensor, by its place in the signature."""
    sizes: dict[str, str]
    """Identifier of each size symbol."""

    @classmethod
    def of(cls, func: FuncOp) -> KernelNames:
        """The names of a function's tensors and sizes; the same before and after every pass."""
        sizes: dict[str, str] = {}
        for symbol in dict.fromkeys([*size_symbols(func), TOPK, HIDDEN]):
            word = _plain(symbol)
            sizes[symbol] = SIZE_WORDS.get(symbol) or unique(word, RESERVED | set(sizes.values()))
        stems: list[str] = []
        for tensor in signature(func):
            stem, number = camel(tensor.name), 1
            while _taken(stem, stems, sizes):
                number += 1
                stem = _numbered(camel(tensor.name), number)
            stems.append(stem)
        return cls(tuple(stems), sizes)

    def new(self, hint: str, taken: Iterable[str] = ()) -> str:
        """A name after an SSA value's hint for a member of the kernel: no tensor, no size, not in `taken`."""
        return self._free(hint, RESERVED | set(taken))

    def local(self, hint: str, taken: Iterable[str]) -> str:
        """The same for a variable of a loop body, where names that other functions use for themselves are free."""
        return self._free(hint, _IN_LOOPS | set(taken))

    def _free(self, hint: str, taken: Iterable[str]) -> str:
        used, number, found = set(taken), 1, hint
        while found in used or _meets(found, self.tensors, self.sizes):
            number += 1
            found = _numbered(hint, number)
        return found


def block_name(stem: str) -> str:
    """Buffer of the elements of a tensor for a block of tokens."""
    return f"{stem}Block"


def widened_name(stem: str) -> str:
    """Buffer of the same, as fp32."""
    return f"{stem}F32"


def out_name(stem: str) -> str:
    """Queue of rows, or of a block of values, to store."""
    return f"{stem}Out"


def sums_name(stem: str) -> str:
    """Tensor of the fp32 sums of a block, of an output of one value a slot or of a dot that scales rows."""
    return f"{stem}Sums"


def part_name(stem: str) -> str:
    """Tensor of the sums over one part of the rows."""
    return f"{stem}Part"


def per_core(size: str) -> str:
    """Field: rows of that size that each core looks after."""
    return f"rowsPerCoreOf{size}"


def left_over(size: str) -> str:
    """Field: cores that look after one row more."""
    return f"rowsLeftOf{size}"


def _plain(symbol: str) -> str:
    """A symbol without the underscores that C++ reserves."""
    word = re.sub(r"_+", "_", re.sub(r"\W", "_", symbol, flags=re.ASCII)).strip("_")
    return f"size{word}" if not word or word[0].isdigit() else word


def _numbered(name: str, number: int) -> str:
    """A name with a number, which takes it out of every family: ``xIn2`` is one of ``x``, ``xInNo2`` is not."""
    return f"{name}No{number}" if _ENDS_IN_SUFFIX.search(name) else f"{name}{number}"


def _taken(stem: str, stems: Iterable[str], sizes: dict[str, str]) -> bool:
    return any(name in RESERVED for name in _family(stem)) or _meets(stem, stems, sizes)


def _family(stem: str) -> list[str]:
    return [stem, *(stem + suffix for suffix in SUFFIXES), f"{stem}BlockBuffer", f"{stem}F32Buffer"]


def _meets(name: str, stems: Iterable[str], sizes: dict[str, str]) -> bool:
    """Whether a name belongs to the family of a tensor, or one of that tensor's names to its own; or is a size's."""
    fields = {field(size) for size in sizes.values() for field in (per_core, left_over)}
    if {*sizes.values(), *fields}.intersection(_family(name)):
        return True
    return any(_extends(name, stem) or _extends(stem, name) for stem in stems)


def _extends(name: str, stem: str) -> bool:
    return name.startswith(stem) and _FAMILY.fullmatch(name[len(stem) :]) is not None
