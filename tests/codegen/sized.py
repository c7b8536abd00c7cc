"""Lowers one group for one size and for many, and runs both on the same arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from harness import Array, execute, group_of

from weft import ops
from weft.codegen.lower import lower
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import Extent, Extents
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Argument, Launch, Scratch

Sizes = Mapping[str, int]
Shapes = Sequence[Sequence[str | int]]


@dataclass(frozen=True)
class Form:
    """What is computed, on arrays whose sizes have letters."""

    build: Callable[..., Any]
    shapes: Shapes
    dtypes: Sequence[DType]

    @property
    def letters(self) -> list[str]:
        return sorted({d for shape in self.shapes for d in shape if isinstance(d, str)})

    def group(self, sizes: Sizes) -> Group:
        """The group at sizes, which may be extents."""
        with Graph().as_default() as graph:
            xs = [
                ops.placeholder(dtype=dtype, shape=at(shape, sizes))
                for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
            ]
            ys = self.build(*xs)
        return group_of(graph, list(ys) if isinstance(ys, tuple) else [ys])

    def arrays(self, sizes: Sizes, seed: int = 0) -> list[Array]:
        """Numbers of very different sizes: sums in other orders differ."""
        rng = np.random.default_rng(seed)
        found: list[Array] = []
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            x = rng.standard_normal(at(shape, sizes)) * 2.0 ** rng.integers(-6, 3, at(shape, sizes))
            found.append(np.asarray(x if dtype.is_floating else x * 9).astype(dtype.numpy))
        return found


def at(shape: Sequence[str | int], sizes: Sizes) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple([sizes[d] if isinstance(d, str) else d for d in shape])


@dataclass
class Variant:
    """Kernels of a form for many sizes, planned at some."""

    form: Form
    planned: Sizes
    target: Target
    extents: Extents = field(default_factory=Extents)

    def __post_init__(self) -> None:
        self.extents.planning = True
        self.group = self.form.group(
            {d: self.extents.base(self.planned[d], 1) for d in self.planned}
        )
        self.launches = lower(self.group, self.target)

    def values(self, sizes: Sizes) -> list[int]:
        return self.extents.values([sizes[d] for d in self.planned])

    def admits(self, sizes: Sizes) -> bool:
        try:
            return self.extents.admits(self.values(sizes))
        except ZeroDivisionError:
            return False

    @property
    def guards(self) -> list[str]:
        """The guards as text."""
        state = self.extents.state
        made, names = state["made"], list(self.planned)

        def text(i: int) -> str:
            kind, a, b = made[i]
            if kind == "base":
                return names[a]
            return str(a) if kind == "number" else f"({text(a)} {kind} {text(b)})"

        least = [f"{text(i)} >= {n}" for i, n in state["least"]]
        return [
            *least, *[f"{text(a)} {k} {text(b)} is {found}" for k, a, b, found in state["guards"]]
        ]  # fmt: skip

    def at(self, sizes: Sizes, group: Group) -> list[Launch]:
        """The launches for some sizes, on the values of a group for these sizes."""
        values = self.values(sizes)
        assert self.extents.admits(values)
        found: dict[Any, Argument] = dict(zip(self.group.inputs, group.inputs, strict=True))
        for theirs, ours in zip(self.group.all_nodes, group.all_nodes, strict=True):
            found.update(zip(theirs.outputs, ours.outputs, strict=True))

        def number(x: int) -> int:
            return values[x.index] if isinstance(x, Extent) else x

        def argument(x: Argument) -> Argument:
            if isinstance(x, Value):
                return found[x]
            if isinstance(x, Scratch):
                return found.setdefault(x, Scratch(number(x.size), x.per_thread))
            return number(x)

        return [
            replace(x, args=tuple(map(argument, x.args)), chunks=number(x.chunks))
            for x in self.launches
        ]


def run(
    form: Form,
    sizes: Sizes,
    target: Target,
    variant: Variant | None = None,
    seed: int | None = None,
) -> list[Array]:
    """The outputs of a form; of a variant's kernels if one is given."""
    group = form.group(sizes)
    launches = lower(group, target) if variant is None else variant.at(sizes, group)
    inputs = dict(zip(group.inputs, form.arrays(sizes), strict=True))
    found = execute(launches, inputs, target, seed)
    empty = {v: np.zeros(known(v.shape), v.dtype.numpy) for v in group.outputs}
    return [found.get(v, empty[v]) for v in group.outputs]


def run_alone(form: Form, sizes: Sizes, target: Target) -> list[Array]:
    """The outputs if every node is a group of its own."""
    group = form.group(sizes)
    values: dict[Value, Array] = dict(zip(group.inputs, form.arrays(sizes), strict=True))
    for node in group.nodes:
        if node.op == "constant":
            values[node.outputs[0]] = node.attrs["value"].array
            continue
        constants = tuple([v.node for v in node.inputs if v.node.op == "constant"])
        inputs = tuple(dict.fromkeys([v for v in node.inputs if v.node not in constants]))
        one = Group((*dict.fromkeys(constants), node), inputs, node.outputs)
        found = execute(lower(one, target), {v: values[v] for v in inputs}, target)
        for v in node.outputs:
            values[v] = found.get(v, np.zeros(known(v.shape), v.dtype.numpy))
    return [values[v] for v in group.outputs]


def same_bits(found: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Whether arrays are equal to the bit; NaN is NaN."""
    return all(
        x.dtype == y.dtype
        and x.shape == y.shape
        and bool(
            np.all((x.view(f"u{x.itemsize}") == y.view(f"u{x.itemsize}")) | (x != x) & (y != y))
        )
        for x, y in zip(found, expected, strict=True)
    )


def variants(
    form: Form, all_sizes: Sequence[Sizes], target: Target
) -> Iterator[tuple[Sizes, Variant]]:
    """Each of the sizes with a variant for it, lowered at these if none before admits them."""
    made: list[Variant] = []
    for sizes in all_sizes:
        variant = next((v for v in made if v.admits(sizes)), None)
        if variant is None:
            variant = Variant(form, sizes, target)
            made.append(variant)
        yield sizes, variant
