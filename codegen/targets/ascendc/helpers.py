"""Functions that a kernel brings along where its bodies call them."""

from __future__ import annotations

from collections.abc import Iterable

from .plan import Method


def sum_row(barriers: bool) -> Method:
    """The sum of a row of products: halves are added until one instruction can reduce what is left."""
    barrier = ("AscendC::PipeBarrier<PIPE_V>();",) if barriers else ()
    comment = (
        "The sum of `elements` products, which it overwrites: the upper half joins the lower one, with exact",
        "lengths, until one repeat can reduce what is left. About log2(elements) roundings reach a product.",
    )
    body = (
        "while (elements > 64) {",
        "    const int32_t half = (elements + 15) / 16 * 8;  // the upper half starts at a multiple of 32 bytes",
        *(f"    {line}" for line in barrier),
        "    AscendC::Add(products, products, products[half], elements - half);",
        "    elements = half;",
        "}",
        *barrier,
        "AscendC::WholeReduceSum<float>(sum, products, elements, 1, 1, 1, 8);",
    )
    tensor = "const AscendC::LocalTensor<float>&"
    return Method(comment, f"void SumRow({tensor} sum, {tensor} products, int32_t elements)", body)


COPY_ROWS_IN = Method(
    (
        "Part of `rows` rows that lie one behind another in global memory, `pitch` apart in UB.",
        "The gap between them counts bytes in global memory and 32-byte blocks in UB.",
    ),
    "void CopyRowsIn(const AscendC::LocalTensor<T>& to, const AscendC::GlobalTensor<T>& from, int64_t rows, "
    "int64_t elements)",
    (
        "const uint32_t bytes = static_cast<uint32_t>(elements * sizeof(T));",
        "const uint32_t gap = static_cast<uint32_t>((hidden - elements) * sizeof(T));",
        "const uint32_t blocks = static_cast<uint32_t>(pitch * sizeof(T) / 32 - (bytes + 31) / 32);",
        "const AscendC::DataCopyExtParams copy{static_cast<uint16_t>(rows), bytes, gap, blocks, 0};",
        "const AscendC::DataCopyPadExtParams<T> pad{false, 0, 0, T()};",
        "AscendC::DataCopyPad(to, from, copy, pad);",
    ),
    "template <typename T>",
)


def helpers(methods: Iterable[Method], barriers: bool) -> list[Method]:
    """The helpers that the bodies of `methods` call."""
    text = "\n".join(line for method in methods for line in method.body)
    known = {"SumRow(": sum_row(barriers), "CopyRowsIn(": COPY_ROWS_IN}
    return [method for call, method in known.items() if call in text]
