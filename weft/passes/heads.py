"""Removes the transposes around attention: heads are read where the projections wrote them.

    y = flash_attention(turned(q), turned(k), turned(v))  ->  turned(head_attention(q, k, v))

Slices of heads are read in place, too, so that one matmul may compute q, k and v.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.attention.interleaved_heads import (
    head_attention,
    head_attention_grad,
    heads_of,
    turned,
)
from weft.ops.declaration import op_of
from weft.ops.indexing.slicing import slice_
from weft.ops.shape.reshape import transpose


def heads_in_place(node: Node) -> Sequence[Value] | None:
    """`flash_attention` on adjacent heads, which are not transposed."""
    parts = [_beside(x) for x in node.inputs]
    if None in parts:
        return None
    found = [part for part in parts if part is not None]
    heads = known(node.inputs[0].shape)[-3]
    first = tuple([at for _, at in found])
    y, sums = head_attention.all(*[x for x, _ in found], **node.attrs, heads=heads, first=first)
    return turned(y), sums


def gradient_in_place(node: Node) -> Sequence[Value] | None:
    """`flash_attention_grad` on adjacent heads, with the gradients in one array."""
    g, q, k, v, sums, shared = node.inputs
    given, *parts = (_beside(x) for x in (g, q, k, v))
    alike = len({x.shape for x in (q, k, v)}) == 1
    if given is None or None in parts or not alike:
        return None
    found = [part for part in parts if part is not None]
    heads = known(q.shape)[-3]
    cotangent = turned(g) if given[1] or known(given[0].shape)[-2] != heads else given[0]
    first = tuple([at for _, at in found])
    joined = head_attention_grad(
        cotangent, *[x for x, _ in found], sums, shared, **node.attrs, heads=heads, first=first
    )
    return [turned(heads_of(joined, heads, n * heads)) for n in range(3)]


def _beside(x: Value) -> tuple[Value, int] | None:
    """The array in which the heads of `x` are adjacent, and the first of them."""
    rank = len(known(x.shape))
    node = x.node
    swap = (*range(rank - 3), rank - 2, rank - 3, rank - 1)
    if rank < 3 or op_of(node) is not transpose or node.attrs["perm"] != swap:
        return None
    source = node.inputs[0]
    cut = source.node
    if op_of(cut) is not slice_ or {*cut.attrs["strides"]} != {1}:
        return source, 0
    whole, part = known(cut.inputs[0].shape), known(source.shape)
    if whole[:-2] != part[:-2] or whole[-1] != part[-1]:
        return source, 0
    return cut.inputs[0], cut.attrs["begin"][-2]
