"""Functions that a kernel brings along where its bodies call them."""

from __future__ import annotations

from collections.abc import Iterable

from .plan import Method


def sum_row(barriers: bool) -> Method:
    """The sum of a row of products in few dependent steps: each of them costs a barrier on architecture 2201."""
    barrier = ("AscendC::PipeBarrier<PIPE_V>();",) if barriers else ()
    comment = (
        "The sum of `elements` products, which it overwrites: the upper half joins the lower one, with exact lengths,",
        "until 4096 are left; then each 64 become one, behind the lower half, and those one again. A product is",
        "rounded about log2(elements) times.",
    )
    body = (
        "int32_t start = 0;",
        "if (elements > 64) {",
        "    do {",
        "        start = (elements + 127) / 128 * 64;  // the lower half is whole repeats, the upper one no longer",
        *(f"        {line}" for line in barrier),
        "        AscendC::Add(products, products, products[start], elements - start);",
        "        elements = start;",
        "    } while (elements > 4096);",
        "    if (elements > 64) {",
        *(f"        {line}" for line in barrier),
        "        elements /= 64;",
        "        AscendC::WholeReduceSum<float>(products[start], products, 64, elements, 1, 1, 8);",
        "    } else {",
        "        start = 0;",
        "    }",
        "}",
        *barrier,
        "AscendC::WholeReduceSum<float>(sum, products[start], elements, 1, 1, 1, 8);",
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
