"""Gather: rows of an array at computed positions, each checked against the bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.chunk import by_work
from weft.codegen.contraction.emit import divide
from weft.codegen.family.emit import (
    check_index,
    copy_bytes,
    load_index,
)
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.node import Node
from weft.ir.shape import known, normal_axis
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch


@dataclass(frozen=True)
class Gather:
    """y[b, o, i] = x[b, o, indices[b, i]], where the elements are rows of `row` bytes."""

    batch: int
    outer: int
    size: int
    picked: int
    row: int
    index: DType

    @property
    def rows(self) -> int:
        """Rows of the output."""
        return self.batch * self.outer * self.picked


def gather_of(node: Node) -> Gather:
    """The problem of a gather node."""
    x, indices = node.data_inputs
    dims, batch_dims = known(x.shape), node.attrs["batch_dims"]
    at = normal_axis(node.attrs["axis"], len(dims))
    return Gather(
        math.prod(dims[:batch_dims]), math.prod(dims[batch_dims:at]), dims[at],
        math.prod(known(indices.shape)[batch_dims:]),
        math.prod(dims[at + 1 :]) * x.dtype.size, indices.dtype,
    )  # fmt: skip


def gather(group: Group, target: Target) -> tuple[Launch, ...]:
    """Copies rows; for an index out of bounds row 0, and an error."""
    node = group.nodes[0]
    problem = gather_of(node)
    if not problem.rows:
        return ()
    rows = by_work(problem.rows, problem.row + 16)
    f = kernel_builder()
    pointers = (f.argument(0), f.argument(1), f.argument(2))
    with rows.loop(f) as row:
        copy_row(f, problem, row, pointers)
    name = f"gather_{problem.rows}x{problem.row}"
    return (
        Launch(
            Kernel(name, f.module()), (*node.data_inputs, node.outputs[0], ERROR, 0), (2,),
            rows.chunks, bytes=2.0 * problem.rows * problem.row, check=True,
        ),
    )  # fmt: skip


def copy_row(f: Builder, problem: Gather, row: Reg, pointers: tuple[Reg, Reg, Reg]) -> None:
    """One row of the output; `pointers` are x, indices, y."""
    x, indices, y = pointers
    lead, i = (integer(0), row)
    if problem.batch * problem.outer > 1:
        lead, i = divide(f, row, integer(problem.picked))
    image, _ = divide(f, lead, integer(problem.outer))
    position = f.add(f.mul(image, problem.picked), i)
    index = load_index(f, indices, position, problem.index)
    inside = check_index(f, index, problem.size, position, slot=3)
    if not problem.size:
        return  # every index is out of bounds, and there is nothing to copy
    source = f.mul(f.add(f.mul(lead, problem.size), inside), problem.row)
    copy_bytes(f, f.offset(x, source), f.offset(y, f.mul(row, problem.row)), problem.row)
