"""Gradients of low rank: ranks exchange the factors, and each computes the product.

The gradient of a linear layer's weight is the product of the output's gradient and the input, both
with a row for each example. With few examples, these factors are much smaller than their product.
The kernel that updates the weight computes the mean over ranks from all ranks' factors.
(Xing et al. 2016, arXiv 1512.06216: sufficient factor broadcasting.)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from weft.collectives.recorded import await_result, buckets_by_size, reduce_all
from weft.eager.record.call.plan import function_plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.ir.dtype import int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.communication.bucket import reduced_later
from weft.ops.communication.collective import group_of
from weft.ops.communication.overlap import begin_gather, end_gather
from weft.ops.declaration import catalogue, constant_of, op_of
from weft.ops.linalg.matmul import matmul
from weft.transport.group import Group

MOST_ROWS: Final = 64
"""The most rows, on all ranks. Each rank computes the whole product: 8192 x 1024 weights with SGD
take 24 ms for 32 rows on a core with AVX2, and 69 for 128; with an all-reduce of two ranks, 34 and
55."""
SMALLER: Final = 4
"""The factors must be this many times smaller than the gradient."""


def pays(shape: Sequence[int], rows: int) -> bool:
    """Whether to exchange factors of `rows` rows on all ranks instead of a gradient of `shape`."""
    return 0 < rows <= MOST_ROWS and SMALLER * rows * sum(shape) <= shape[0] * shape[1]


def mean_gradients(
    products: Sequence[Lazy], others: Sequence[Lazy], group: Group, bucket_bytes: int
) -> tuple[Lazy, ...]:  # fmt: skip
    """Record the mean over ranks of gradients: of products by their factors, of others in buckets.

    All ranks add the same products in rank order, so they get the same bits. Like buckets, factors
    are sent during the backward pass (see `reduce_all`).

    Args:
        products: gradients whose factors have equally many rows on every rank.
        others: the other gradients.
    """
    if not products:
        return reduce_all(others, "mean", group, bucket_bytes)
    static = {
        "products": len(products), "buckets": buckets_by_size(others, bucket_bytes),
        "group": group.number,
    }  # fmt: skip
    gs = (*products, *others)
    plan = function_plan(_means, [g.type for g in gs], static, differentiable=False)
    *means, exchanged = trace.now.record(plan, gs)
    await_result(exchanged)
    return tuple(means)


def _means(
    *gs: Value, products: int, buckets: tuple[int, ...], group: int
) -> tuple[Value, ...]:  # fmt: skip
    first, others = gs[:products], gs[products:]
    reduced = functools.partial(reduced_later, *others, buckets=buckets, reduction="mean")
    if not all([_is_product(g) for g in first]):
        mean = catalogue.all_reduce.all(*first, reduction="mean", group=group)
        return (*mean, *reduced(group=group), constant_of(len(gs), int64))
    ranks = group_of(group).size
    parts: list[Value] = []
    for g in first:
        columns, rows = g.node.inputs
        parts += [columns / constant_of(ranks, columns.dtype), rows]
    (ticket,) = begin_gather.all(*parts, group=group)
    rest = reduced(group=group)
    shapes = tuple([(ranks * n, *more) for n, *more in [known(x.shape) for x in parts]])
    dtypes = tuple([x.dtype for x in parts])
    *factors, exchanged = end_gather.all(ticket, shapes=shapes, dtypes=dtypes, group=group)
    pairs = zip(factors[::2], factors[1::2], strict=True)
    means = [catalogue.matmul(y, x, transpose_x=True) for y, x in pairs]
    return (*means, *rest, exchanged)


def _is_product(g: Value) -> bool:
    """Whether a gradient is a product of factors, and not a placeholder for any gradient."""
    node = g.node
    return op_of(node) is matmul and node.attrs["transpose_x"] and not node.attrs["transpose_y"]
