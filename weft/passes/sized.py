"""Derives one step for many sizes from the steps for a few.

The passes see plain integers: they run for a few sizes, and if they did the same each time, every
number in the results follows from the sizes (`weft.transform.resize`). Written with symbolic
extents (`weft.ir.extent`), the step is lowered once, and its program runs for all admitted sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from weft.ir.extent import Extents, assume
from weft.ir.graph import Graph
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.shape import known
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.shape.creation import iota
from weft.passes.pipeline import verify_types
from weft.passes.step import Step
from weft.transform.resize import Fit, Number, Sizes, Sizing, UnfitError


@dataclass(frozen=True)
class Sized:
    """A step whose shapes have extents.

    Attributes:
        step: constants that follow from the sizes are feeds, after those of the samples.
        fit: how all sizes follow from the bases.
        least: the smallest planned values of the bases.
        most: the largest.
        extents: all extents that follow from the bases.
        numbers: the value to feed for each of those constants.
    """

    step: Step
    fit: Fit
    least: Sizes
    most: Sizes
    extents: Extents
    numbers: tuple[Number, ...]


def sized(samples: Sequence[tuple[Sizes, Step]]) -> Sized:
    """The step of which the samples are instances.

    Args:
        samples: simplified steps with their sizes, from the smallest to the largest.

    Raises:
        UnfitError: they differ in more than sizes, or a number does not follow from the sizes.
    """
    fit = Fit([sizes for sizes, _ in samples])
    least, most = (fit.bases(samples[i][0]) for i in (0, -1))
    steps = [step for _, step in samples]
    if len({(len(s.graph.nodes), s.feeds, s.updates) for s in steps}) > 1:
        raise UnfitError
    extents = Extents()
    merger = _Merger(fit, Sizing(tuple([extents.base(n) for n in most])))
    places = [{node: i for i, node in enumerate(s.graph.nodes)} for s in steps]
    for nodes in zip(*[s.graph.nodes for s in steps], strict=True):
        if len({_wiring(n, place) for n, place in zip(nodes, places, strict=True)}) > 1:
            raise UnfitError
        merger.take(nodes)
    verify_types(merger.graph)  # sizes that would give other types by the rules are not admitted
    for kind in [kind for node in merger.graph.nodes for kind in node.types]:
        assume(0 not in known(kind.shape))
    merger.graph.outputs = tuple([merger.mapped[v] for v in steps[0].graph.outputs])
    feeds = (*steps[0].feeds, *merger.feeds)
    step = replace(steps[0], graph=merger.graph, feeds=feeds)
    return Sized(step, fit, least, most, extents, tuple(merger.numbers))


class _Merger:
    """Merges nodes at the same position in several graphs into one graph."""

    def __init__(self, fit: Fit, sizing: Sizing) -> None:
        self.graph: Final = Graph()
        self.mapped: Final[dict[Value, Value]] = {}  # from values of the first sample
        self.feeds: Final[list[str]] = []
        self.numbers: Final[list[Number]] = []
        self._fit = fit
        self._sizing = sizing

    def take(self, nodes: Sequence[Node]) -> None:
        """Adds the node of which these are instances; they are wired alike."""
        node = nodes[0]
        types = self._sizing.types(self._fit.types([n.types for n in nodes]))
        if any([op_of(n) is CONSTANT for n in nodes]):
            new = self._constant(nodes, types)
        else:
            inputs = tuple([self.mapped[v] for v in node.inputs])
            attrs = {key: self._attr([n.attrs[key] for n in nodes]) for key in node.attrs}
            new = Node(node.op, inputs, attrs, types, node.name, source=node.source)
        self.graph.append(new)
        self.mapped.update(zip(node.outputs, new.outputs, strict=True))

    def _attr(self, samples: Sequence[Any]) -> Any:
        return self._sizing.at(self._fit.value(samples))

    def _constant(self, nodes: Sequence[Node], types: tuple[TensorType, ...]) -> Node:
        node, (kind,) = nodes[0], types
        if len({(n.op, n.types) for n in nodes}) > 1:
            return self._made(node.name, [_array(n) for n in nodes], kind)
        found = self._fit.constant([n.attrs["value"] for n in nodes])
        if not isinstance(found, Number):
            return node
        self.feeds.append(node.name)
        self.numbers.append(found)
        return Node("placeholder", (), {"dtype": kind.dtype, "shape": kind.shape}, types, node.name)

    def _made(self, name: str, arrays: Sequence[Any], kind: TensorType) -> Node:
        """A constant whose shape follows from the sizes: one number, or a range."""
        for axis in range(arrays[0].ndim):
            if all([_is_in_order(a, axis) for a in arrays]):
                attrs = {"shape": kind.shape, "axis": axis, "dtype": kind.dtype}
                return Node("iota", (), attrs, (kind,), name)
        first = arrays[0].reshape(-1)[:1]
        if not all([a.size and (a == first).all() for a in arrays]):
            raise UnfitError
        one = TensorType(kind.dtype, ())
        attrs = {"value": Literal(first.reshape(()))}
        number = Node("constant", (), attrs, (one,), f"{name}/number")
        self.graph.append(number)
        return Node("broadcast_to", number.outputs, {"shape": kind.shape}, (kind,), name)


def _is_in_order(array: Any, axis: int) -> bool:
    """Whether the numbers along an axis are 0, 1, 2 and so on."""
    line = np.arange(array.shape[axis]).reshape([-1] + [1] * (array.ndim - 1 - axis))
    return array.dtype.kind != "b" and bool((array == line).all())


def _array(node: Node) -> Any:
    """The array of a constant or of a range; short ranges have been folded."""
    op = op_of(node)
    return node.attrs["value"].array if op is CONSTANT else op.reference(**node.attrs)


def _wiring(node: Node, places: Mapping[Node, int]) -> Any:
    """What a node is and where its inputs come from, given the positions of all nodes."""
    if node.operands or node.regions:
        raise UnfitError
    if op_of(node) is CONSTANT or op_of(node) is iota:
        return "numbers"
    inputs = tuple([(places[v.node], v.index) for v in node.inputs])
    return node.op, node.name, inputs, tuple(node.attrs)
