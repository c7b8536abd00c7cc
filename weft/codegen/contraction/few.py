"""Matmuls of a few rows, or with few columns: the large operand is read once, with few sums.

The large operand is y; if columns are few, the transposed matmul is computed, and its tiles are
transposed when stored. Both kernels add in the order `few` of `weft.codegen.contraction.order`.
"""

from __future__ import annotations

from weft.codegen.contraction.across import Across
from weft.codegen.contraction.few_columns import FewColumns
from weft.codegen.contraction.order import FEW
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink
from weft.codegen.contraction.streamed import Streamed
from weft.codegen.target import Target
from weft.ir.extent import pinned, same
from weft.ir.node import Value
from weft.passes.launch import Launch


def launch_few(
    product: Product, target: Target, operands: tuple[Value, Value], sink: Sink
) -> tuple[Launch, ...]:
    """The launch of a matmul with few rows or columns."""
    swapped = product.m > FEW
    if swapped:
        product, operands = product.swapped(), (operands[1], operands[0])
    kernel = Streamed if same(product.y_step, 1) else Across
    if kernel is Streamed and FEW < pinned(product.m) <= target.lanes(product.accumulator.size):
        kernel = FewColumns
    return (kernel(product, target, sink, swapped).launch(*operands),)
