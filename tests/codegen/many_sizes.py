"""Shared by tests of kernels for many sizes: they have the bits of kernels for one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from harness import Array, assert_close, execute, references

from weft import ops
from weft.codegen.lower import lower
from weft.codegen.target import Target
from weft.ir.dtype import as_dtype
from weft.ir.extent import Extent, Extents
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY
from weft.passes.group import Group
from weft.passes.launch import ERROR, Launch, Scratch

Form = Callable[..., tuple[Sequence[tuple[int, ...]], Mapping[str, Any]]]
"""Shapes of the inputs and attributes of one operation, from some sizes."""


def group_of(op: str, form: Form, sizes: Sequence[int], dtype: str = "float32") -> Group:
    """A group of one node on placeholders."""
    shapes, attrs = form(*sizes)
    with Graph().as_default():
        xs = [ops.placeholder(dtype=as_dtype(dtype), shape=shape) for shape in shapes]
        node = REGISTRY[op].all(*xs, **attrs)[0].node
    return Group((node,), node.data_inputs, node.outputs)


class Many:
    """The kernels of one operation, planned at some sizes, for every size that they admit."""

    def __init__(
        self, op: str, form: Form, sizes: Sequence[int], target: Target, dtype: str = "float32"
    ) -> None:
        self.extents = Extents()
        self.extents.planning = True
        self.op, self.form, self.target, self.dtype = op, form, target, dtype
        bases = [self.extents.base(n) for n in sizes]
        self.group = group_of(op, form, bases, dtype)
        self.launches = lower(self.group, target)

    def admits(self, sizes: Sequence[int]) -> bool:
        """Whether the kernels hold for these sizes."""
        return self.extents.admits(self.extents.values(sizes))

    def at(self, sizes: Sequence[int], group: Group) -> list[Launch]:
        """The launches with numbers in place of extents, on the values of another group."""
        values = self.extents.values(sizes)
        ours = (*self.group.inputs, *self.group.outputs)
        buffers: dict[Any, Any] = {ERROR: ERROR}
        buffers.update(zip(ours, (*group.inputs, *group.outputs), strict=True))

        def number(x: int) -> int:
            return values[x.index] if isinstance(x, Extent) else x

        def argument(x: Any) -> Any:
            if isinstance(x, int):
                return number(x)
            if x not in buffers:
                buffers[x] = Scratch(number(x.size), x.per_thread)
            return buffers[x]

        return [
            replace(x, args=tuple(map(argument, x.args)), chunks=number(x.chunks))
            for x in self.launches
        ]

    def check(self, sizes: Sequence[int], arrays: Sequence[Array], tolerance: float) -> None:
        """The same bits as kernels for one size, however chunks are run; close to NumPy."""
        assert self.admits(sizes), sizes
        group = group_of(self.op, self.form, sizes, self.dtype)
        inputs = dict(zip(group.inputs, arrays, strict=True))
        (out,) = group.outputs
        one = execute(lower(group, self.target), inputs, self.target)[out]
        many = self.at(sizes, group)
        for seed in (None, 1):
            found = execute(many, inputs, self.target, seed)[out]
            assert found.tobytes() == one.tobytes(), (self.op, sizes, seed)
        with np.errstate(all="ignore"):
            expected = references(group, inputs)[out]
        above = tolerance * float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
        assert_close(one, expected, tolerance, above, self.op)
