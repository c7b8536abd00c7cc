"""Runs kernels for many sizes next to kernels for one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from families import machine
from guarded import Guarded
from harness import GUARD, Array, Memory, assert_close, execute, references

from weft import ops
from weft.codegen.lower import lower
from weft.codegen.target import Target
from weft.ir.dtype import DType, as_dtype, float32
from weft.ir.extent import Extent, Extents
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY
from weft.passes.group import Group
from weft.passes.launch import ERROR, Argument, Launch, Scratch

SOME, FEW = 3, 7
"""Of so many sizes one has a kernel of its own, to compare with: in float32, in other types."""
Sizes = tuple[int, ...]
Types = list[tuple[DType, Sizes]]


@dataclass(frozen=True)
class Problem:
    """An operation whose shapes and attributes follow from some sizes.

    Attributes:
        types: types of the inputs for these sizes.
        attrs: attributes for these sizes.
        feeds: inputs for these sizes; drawn from their types where it is `None`.
    """

    op: str
    types: Callable[..., Types]
    attrs: Callable[..., Mapping[str, Any]] = lambda *_: {}
    feeds: Callable[..., list[Array]] | None = None
    rtol: float = 2e-6
    atol: float = 1e-6

    def group(self, sizes: Sequence[int]) -> Group:
        """The node for these sizes, which may be extents."""
        with Graph().as_default():
            xs = [ops.placeholder(dtype=d, shape=s) for d, s in self.types(*sizes)]
            node = REGISTRY[self.op].all(*xs, **self.attrs(*sizes))[0].node
        return Group((node,), tuple(xs), node.outputs)

    def arrays(self, sizes: Sizes) -> list[Array]:
        """Inputs for these sizes."""
        if self.feeds is not None:
            return self.feeds(*sizes)
        return [drawn(dtype, shape) for dtype, shape in self.types(*sizes)]


def drawn(dtype: DType, shape: Sizes) -> Array:
    """Numbers with repetitions; zeros of both signs, NaN and infinity among many."""
    rng = np.random.default_rng(sum(shape))
    if dtype.is_floating:
        x = np.round(rng.standard_normal(shape, np.float32) * 4, 1).astype(dtype.numpy)
        special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf], np.float32).astype(dtype.numpy)
        flat = x.reshape(-1)
        flat[40::97] = np.resize(special, len(flat[40::97]))
        return x
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype.numpy)


class Fenced(Memory):
    """An array that ends where memory ends, so that reading beyond it faults as well."""

    def __init__(self, array: Array, skew: int = 0) -> None:
        self.fence = Guarded(GUARD + array.nbytes)
        self.raw, self.slice = self.fence.bytes, slice(GUARD, GUARD + array.nbytes)
        self.shape, self.dtype = array.shape, array.dtype
        self.raw[:GUARD] = 0xA5
        self.array[...] = array


@dataclass
class Kernels:
    """The kernels of a problem: variants for many sizes, added as sizes need them."""

    problem: Problem
    target: Target
    variants: list[tuple[Extents, Group, tuple[Launch, ...]]] = field(default_factory=list)

    def check(self, sizes: Sizes, alone: bool) -> None:
        """Checks the kernels at these sizes: against the reference, and on all bits.

        Args:
            alone: also by the bits of a kernel for these sizes alone.
        """
        group, arrays = self.problem.group(sizes), self.problem.arrays(sizes)
        inputs = dict(zip(group.inputs, arrays, strict=True))
        with np.errstate(all="ignore"):
            expected = references(group, inputs)
        launches = self.at(sizes, group)
        found = execute(launches, inputs, self.target, make=Fenced)
        others = [execute(launches, inputs, self.target, seed=1, skew=4)]
        if alone:
            others.append(execute(lower(group, self.target), inputs, self.target))
        for y in [y for y in group.outputs if 0 not in known(y.shape)]:
            assert as_dtype(expected[y].dtype) is y.dtype
            rtol, atol = self.problem.rtol, self.problem.atol
            assert_close(found[y], expected[y], rtol, atol, f"{sizes} {y.name}")
            for other in others:
                assert found[y].tobytes() == other[y].tobytes(), (sizes, y.name)

    def at(self, sizes: Sizes, group: Group) -> list[Launch]:
        """The launches for these sizes on the values of `group`."""
        for extents, like, launches in self.variants:
            try:
                values = extents.values(sizes)
            except ZeroDivisionError:
                continue
            if extents.admits(values):
                return at_sizes(launches, values, like, group)
        extents = Extents()
        extents.planning = True
        like = self.problem.group([extents.base(n) for n in sizes])
        self.variants.append((extents, like, lower(like, self.target)))
        assert extents.admits(extents.values(sizes))
        return self.at(sizes, group)


def at_sizes(
    launches: Sequence[Launch], values: Sequence[int], like: Group, group: Group
) -> list[Launch]:
    """Launches on the values of `like`, for these values of its extents, on those of `group`."""
    named: dict[Value | Scratch, Value | Scratch] = {ERROR: ERROR}
    named.update(zip(like.inputs, group.inputs, strict=True))
    for theirs, ours in zip(like.all_nodes, group.all_nodes, strict=True):
        named.update(zip(theirs.outputs, ours.outputs, strict=True))

    def number(x: int) -> int:
        return values[x.index] if isinstance(x, Extent) else x

    def argument(old: Argument) -> Argument:
        if isinstance(old, int):
            return number(old)
        if isinstance(old, Scratch) and old not in named:
            named[old] = Scratch(number(old.size), old.per_thread)
        return named[old]

    return [
        replace(x, args=tuple(map(argument, x.args)), chunks=number(x.chunks)) for x in launches
    ]


def check(
    problem: Problem, sizes: Sequence[Sizes], most: int, targets: Sequence[str] = ("native",)
) -> None:
    """Checks a problem at all sizes; at most `most` variants may be needed.

    Kernels for one size are made for some of the sizes: they take nearly all of the time. Types
    other than float32 take every third size, so that three of them take all.
    """
    for name in targets:
        kernels = Kernels(problem, machine(name))
        for number, each in enumerate(sizes):
            types = [dtype for dtype, _ in problem.types(*each)]
            is_main = float32 in types or not types
            if is_main or number == 0 or number % 3 == types[0].size.bit_length() % 3:
                kernels.check(each, number % (SOME if is_main else FEW) == 0)
        planned = [extents.state["bases"] for extents, *_ in kernels.variants]
        assert len(planned) <= most, f"{name}: variants for {planned}"
