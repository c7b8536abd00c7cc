"""Cumulative sums, products and maxima: sequential along the axis, vectors across it."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.chunk import by_work
from weft.codegen.contraction.emit import divide, read, subtract, write
from weft.codegen.family.emit import (
    UNROLL,
    Part,
    axis_of,
    blocks_of,
    compute_dtype,
    over_blocks,
    over_vectors,
    vector_lanes,
)
from weft.codegen.loop.arithmetic import combine, identity, literal
from weft.codegen.loop.convert import cast
from weft.codegen.target import Target
from weft.ir.dtype import DType, float64
from weft.ir.extent import smallest
from weft.ir.node import Node
from weft.ir.shape import known
from weft.ops.declaration import family_of
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch


def cumulative(group: Group, target: Target) -> tuple[Launch, ...]:
    """One row of results for every row along the axis; sums and products carry float64."""
    node = group.nodes[0]
    x, y = node.data_inputs[0], node.outputs[0]
    outer, size, inner = axis_of(known(x.shape), node.attrs["axis"])
    if not outer * size * inner:
        return ()
    lanes = 1 if inner == 1 else vector_lanes(x.dtype, target.vector_bits)
    blocks = blocks_of(inner, UNROLL * lanes)
    rows = by_work(outer * blocks, size * smallest(inner, UNROLL * lanes))
    f = kernel_builder()
    pointers = f.argument(0), f.argument(1)
    with rows.loop(f) as row:
        image, block = divide(f, row, integer(blocks))
        start = f.mul(image, size * inner)

        def body(first: Reg, count: Reg | int) -> None:
            run(f, node, (size, inner), f.add(start, first), (count, lanes), pointers)

        over_blocks(f, inner, UNROLL * lanes, block, body)
    name = f"{node.op}_{x.dtype.name}_{outer}x{size}x{inner}"
    moved = 2.0 * outer * size * inner * x.dtype.size
    return (Launch(Kernel(name, f.module()), (x, y), (1,), rows.chunks, ((1, 0),), bytes=moved),)


def carried_dtype(node: Node) -> DType:
    """The type of what is carried along the axis: float64 for floating sums and products.

    In float32 a sum of ones ends at 2**24. The chain of additions is no longer in float64.
    """
    dtype = node.outputs[0].dtype
    extreme = family_of(node).combine in ("maximum", "minimum")
    return float64 if dtype.is_floating and not extreme else compute_dtype(dtype)


def run(
    f: Builder,
    node: Node,
    sizes: tuple[int, int],
    start: Reg,
    width: tuple[Reg | int, int],
    pointers: tuple[Reg, Reg],
) -> None:
    """Goes along the axis: `sizes` are its length and stride, `width` elements and lanes."""
    (size, stride), (count, lanes) = sizes, width
    dtype, op = node.outputs[0].dtype, family_of(node).combine
    wide, carried = compute_dtype(dtype), carried_dtype(node)
    neutral = literal(identity(op, carried), carried, lanes)

    def body(first: Reg, parts: Sequence[Part]) -> None:
        with f.loop(0, size, carried=[neutral] * len(parts)) as loop:
            step = (
                subtract(f, integer(size - 1), loop.index) if node.attrs["reverse"] else loop.index
            )
            at = f.add(f.add(start, first), f.mul(step, stride))
            for i, part in enumerate(parts):
                offset = f.mul(f.add(at, part.first), dtype.size)
                value = read(f, f.offset(pointers[0], offset), lanes, dtype, wide, part.mask)
                before = loop.carried[i]
                after = combine(f, op, carried, before, cast(f, value, wide, carried))
                loop.next[i] = after
                result = cast(f, before if node.attrs["exclusive"] else after, carried, wide)
                write(f, result, f.offset(pointers[1], offset), dtype, part.mask)

    over_vectors(f, count, lanes, body)
