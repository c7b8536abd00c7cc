"""Gradients of low rank: ranks exchange the factors, and each computes the product.

The gradient of a linear layer's weight is the product of the output's gradient and the input, both
with a row for each example. With few examples, these factors are much smaller than their product.
The factors of all ranks give the mean over ranks at once, in the kernel that updates the weight.
(Xing et al. 2016, arXiv 1512.06216: sufficient factor broadcasting.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.distributed.recorded import await_result
from weft.eager.record.lazy import Lazy
from weft.eager.record.plan import function_plan
from weft.eager.record.state import trace
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.base import catalogue, constant_of, op_of
from weft.ops.communication.collective import group_of
from weft.ops.communication.shard import gather_parts
from weft.ops.linalg.matmul import matmul
from weft.transport.group import Group

MOST_ROWS: Final = 64
"""Of all ranks. Each rank computes the whole product: 8192 x 1024 weights with SGD take 24 ms for
32 rows on a core with AVX2, and 69 for 128; with an all-reduce of two ranks 34 and 55."""
SMALLER: Final = 4
"""How many times smaller than the gradient the factors must be."""


def pays(shape: Sequence[int], rows: int) -> bool:
    """Whether to exchange factors of so many rows in all instead of a gradient of this shape."""
    return 0 < rows <= MOST_ROWS and SMALLER * rows * sum(shape) <= shape[0] * shape[1]


def mean_of_products(gs: Sequence[Lazy], group: Group) -> tuple[Lazy, ...]:
    """Record the mean over ranks of gradients, whose factors have as many rows on every rank.

    All ranks add up the same products in the same order: that of ranks.
    """
    types = [g.type for g in gs]
    plan = function_plan(_mean, types, {"group": group.number}, differentiable=False)
    *found, exchanged = trace.now.record(plan, tuple(gs))
    await_result(exchanged)
    return tuple(found)


def _mean(*gs: Value, group: int) -> tuple[Value, ...]:
    ranks = group_of(group).size
    if not all([_is_product(g) for g in gs]):
        found = catalogue.all_reduce.all(*gs, reduction="mean", group=group)
        return (*found, constant_of(len(gs), int64))
    parts: list[Value] = []
    for g in gs:
        columns, rows = g.node.inputs
        parts += [columns / constant_of(ranks, columns.dtype), rows]
    shapes = tuple([(ranks * n, *rest) for n, *rest in [known(x.shape) for x in parts]])
    *found, exchanged = gather_parts.all(*parts, shapes=shapes, group=group)
    pairs = zip(found[::2], found[1::2], strict=True)
    return (*[catalogue.matmul(y, x, transpose_x=True) for y, x in pairs], exchanged)


def _is_product(g: Value) -> bool:
    """Whether it is a product of factors; not where it stands for any gradient of its type."""
    node = g.node
    return op_of(node) is matmul and node.attrs["transpose_x"] and not node.attrs["transpose_y"]
