"""Copies an array, and reports an error if a count of bad elements is not 0."""

from __future__ import annotations

import math

from weft.codegen.builder import integer, kernel_builder
from weft.codegen.chunk import by_work
from weft.codegen.contraction.emit import subtract
from weft.codegen.family.emit import copy_bytes, load_index, report_fault
from weft.codegen.target import Target
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import ERROR, Kernel, Launch


def check(group: Group, target: Target) -> tuple[Launch, ...]:
    """Copies the first input; reports an error where the second is not 0."""
    node = group.nodes[0]
    (x, wrong), y = node.data_inputs, node.outputs[0]
    size = math.prod(known(x.shape)) * x.dtype.size
    if not size:
        return ()
    items = by_work(size, 1)
    f = kernel_builder()
    first, last = items.bounds(f)
    count = subtract(f, last, first)
    copy_bytes(f, f.offset(f.argument(0), first), f.offset(f.argument(2), first), count)
    found = load_index(f, f.argument(1), integer(0), wrong.dtype)
    with f.when(f.compare("icmp ne", found, integer(0))):
        report_fault(f, found, integer(0), slot=3)
    kernel = Kernel(f"check_{size}", f.module())
    args = (x, wrong, y, ERROR, 0)
    return (Launch(kernel, args, (2,), items.chunks, ((2, 0),), bytes=2.0 * size, check=True),)
