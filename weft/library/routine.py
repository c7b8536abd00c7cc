"""Routines: the launches of one recorded call, at concrete sizes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from weft.codegen.target import Target
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.library.collapse import collapsed
from weft.library.entry import Entry, entry_for
from weft.library.form import Form, form_of, resized
from weft.library.form_text import group_at
from weft.library.host_part import HostPart, of_graph, of_node
from weft.library.literal import without_sizes
from weft.library.variant import Code
from weft.ops.boundary.state import CONSTANT, placeholder
from weft.ops.declaration import (
    Alias,
    Boundary,
    Elementwise,
    fault_of,
    inner_nodes,
    is_hosted,
    is_region,
    op_of,
)
from weft.passes.fuse import fuse
from weft.passes.group import Fused, Group, nbytes
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.transform.interpreter import needs_interpreter

Array = np.ndarray[Any, Any]


class NoRoutineError(Exception):
    """A call cannot be written as launches: it has control flow, or assigns variables."""


@dataclass(frozen=True, eq=False)
class Part:
    """A group on the buffers of a routine.

    Attributes:
        form: of the group, at the sizes that its entry takes.
        buffers: the routine's buffer for each of the group's buffers, without scratch memory.
    """

    form: Form
    entry: Entry
    buffers: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those that its entry takes."""
        return self.form.sizes

    @functools.cached_property
    def group(self) -> Group:
        """The group, which is needed only to write kernels, and to describe it."""
        return group_at(*self.form)

    def restore(self) -> list[Code]:
        """Writes kernels again whose object code is gone; returns them."""
        return self.entry.restore(self.group, self.sizes)

    def add(self, sizes: tuple[int, ...]) -> None:
        """Adds kernels for sizes for which there are none.

        Raises:
            CompileError: there is no kernel for it.
        """
        self.entry.add(self.group, self.sizes, sizes)

    def group_at(self, sizes: Sequence[int]) -> Group:
        """The group at concrete sizes."""
        return resized(self.group, self.sizes, sizes, int)


@dataclass(frozen=True, eq=False)
class Routine:
    """One call as launches. Buffers are numbered: inputs, results, constants, temporaries.

    Sizes may be extents: then it is a routine for many sizes.

    Attributes:
        results: for each result its own number, or that of the buffer whose elements it has.
        constants: arrays that kernels read.
        temporaries: bytes of each.
    """

    inputs: int
    results: tuple[int, ...]
    constants: tuple[Array, ...]
    temporaries: tuple[int, ...]
    parts: tuple[Part | HostPart, ...]

    @functools.cached_property
    def reads(self) -> frozenset[int]:
        """The inputs that it reads."""
        numbers = [n for part in self.parts for n in part.buffers]
        return frozenset([n for n in (*numbers, *self.results) if 0 <= n < self.inputs])

    @functools.cached_property
    def calls(self) -> bool:
        """Whether it calls Python."""
        return any([isinstance(part, HostPart) for part in self.parts])

    @functools.cached_property
    def fails(self) -> bool:
        """Whether a kernel may find a value that does not fit."""
        groups = [part.group for part in self.parts if isinstance(part, Part)]
        return any([fault_of(node) for group in groups for node in group.all_nodes])

    @functools.cached_property
    def updates(self) -> frozenset[tuple[int, int]]:
        """Pairs of an input and a result that may be written in its place."""
        found: set[tuple[int, int]] = set()
        last = {n: i for i, part in enumerate(self.parts) for n in part.buffers}
        for i, part in enumerate(self.parts):
            if isinstance(part, Part):
                pairs = _elementwise_pairs(part.group)
                own = [(part.buffers[x], part.buffers[y]) for x, y in pairs]
                found.update([(x, y) for x, y in own if last[x] == i and y in self.results])
        return frozenset([(x, y) for x, y in found if x < self.inputs <= y])


def _elementwise_pairs(group: Group) -> list[tuple[int, int]]:
    """The buffers of an input and of an output of which each element reads its like alone."""
    results = [v for node in group.all_nodes for v in node.outputs]
    written = frozenset(group.outputs)
    found: list[tuple[int, int]] = []
    for i, x in enumerate(group.inputs):
        reached = {x}
        for node in group.all_nodes:
            if not reached.isdisjoint(node.inputs):
                if not isinstance(op_of(node).lower, Elementwise) or node.types[0].shape != x.shape:
                    break
                reached.update(node.outputs)
        else:
            found += [
                (i, len(group.inputs) + k)
                for k, y in enumerate(results)
                if y in written and y.shape == x.shape and y.dtype is x.dtype
            ]
    return found


def joined(
    pieces: Sequence[tuple[Routine, Sequence[int], Sequence[int]]], inputs: int, results: int
) -> Routine:
    """One routine of several, none of which calls Python or reads results of another.

    Args:
        pieces: each with the numbers of its inputs and its results among all of them.
    """
    shared = dict.fromkeys([each for each, _, _ in pieces])
    first = inputs + results
    ends = accumulate([len(each.constants) for each in shared], initial=first)
    begins = dict(zip(shared, ends, strict=False))
    constants = [x for each in shared for x in each.constants]
    temporaries: list[int] = []
    parts: list[Part | HostPart] = []
    found = list(range(inputs, first))
    for each, xs, ys in pieces:
        own = first + len(constants) + len(temporaries)
        place = [
            *xs, *[inputs + y for y in ys],
            *range(begins[each], begins[each] + len(each.constants)),
            *range(own, own + len(each.temporaries)), -1,
        ]  # fmt: skip
        temporaries += each.temporaries
        for part in each.parts:
            assert isinstance(part, Part)
            parts.append(replace(part, buffers=tuple([place[n] for n in part.buffers])))
        for y, n in zip(ys, each.results, strict=True):
            found[y] = place[n]
    return Routine(inputs, tuple(found), tuple(constants), tuple(temporaries), tuple(parts))


def routine(
    graph: Graph, outputs: Sequence[Value], feeds: Sequence[Value], target: Target
) -> Routine:
    """The routine that computes values of a graph.

    Args:
        feeds: its inputs; values in the middle of the graph may be among them.

    Raises:
        NoRoutineError: it has no such form.
        WeftError: whatever operations raise for these types.
    """
    if needs_interpreter(graph):
        count, part = len(feeds), of_graph(graph, outputs, feeds)
        return Routine(count, tuple(range(count, count + len(outputs))), (), (), (part,))
    if _is_alias(outputs, feeds):
        return Routine(1, (0,), (), (), ())
    if any(map(_has_control, graph.nodes)):
        raise NoRoutineError
    request = Request(graph, tuple(outputs), (), tuple(feeds))
    step = optimize(specialize(request, [v.type for v in feeds], {}, {}))
    return _Writer(step, target).routine()


@dataclass(eq=False)
class _Writer:
    """Numbers the buffers of a step and lists the launches of its groups."""

    step: Step
    target: Target
    number: dict[Value, int] = field(default_factory=dict[Value, int])
    constants: list[Array] = field(default_factory=list[Array])
    temporaries: list[int] = field(default_factory=list[int])

    def routine(self) -> Routine:
        """The routine of the step."""
        step = self.step
        if step.updates or any(map(_is_foreign, step.graph.nodes)):
            raise NoRoutineError
        fused = fuse(step)
        fused = fused.with_groups([without_sizes(group) for group in fused.groups])
        nodes = {n.name: n for n in step.graph.nodes if op_of(n) is placeholder}
        for i, name in enumerate(step.feeds):
            if name in nodes:
                self.number[nodes[name].outputs[0]] = i
        inputs = len(step.feeds)
        roots = [fused.root(v) for v in step.graph.outputs]
        for i, value in enumerate(roots):
            if op_of(value.node) is not CONSTANT:
                self.number.setdefault(value, inputs + i)
        self._memory(fused, inputs + len(roots))
        results = tuple([self.number[v] for v in roots])
        parts = tuple([self._part(group, fused) for group in fused.groups])
        return Routine(
            inputs, results, tuple(self.constants), tuple(self.temporaries), parts
        )  # fmt: skip

    def _memory(self, fused: Fused, first: int) -> None:
        """Numbers constants, then what groups write besides results."""
        values = [v for g in fused.groups for v in (*g.inputs, *g.outputs)]
        roots = dict.fromkeys([*map(fused.root, [*values, *self.step.graph.outputs])])
        for value in roots:
            if op_of(value.node) is CONSTANT and value not in self.number:
                self.number[value] = first + len(self.constants)
                self.constants.append(value.node.attrs["value"].array)
        self._first = first + len(self.constants)
        for value in roots:
            if value not in self.number:
                self.number[value] = self._temporary(nbytes(value))

    def _temporary(self, size: int) -> int:
        self.temporaries.append(size)
        return self._first + len(self.temporaries) - 1

    def _part(self, group: Group, fused: Fused) -> Part | HostPart:
        node = group.nodes[0]
        if is_hosted(node):
            values = [*node.inputs, *node.outputs]
            return of_node(node, [self.number.get(fused.root(v), -1) for v in values])
        values = [*group.inputs, *[v for n in group.all_nodes for v in n.outputs]]
        numbers = [self.number.get(fused.root(v), -1) for v in values]
        like = collapsed(group)
        entry, form = entry_for(form_of(like), self.target)
        return Part(form, entry, tuple(numbers))


def _is_alias(outputs: Sequence[Value], feeds: Sequence[Value]) -> bool:
    """Whether the only result is the only input in another shape: no pass has to look at it."""
    if len(outputs) != 1 or len(feeds) != 1:
        return False
    node, op = outputs[0].node, op_of(outputs[0].node)
    return node.inputs == (*feeds,) and isinstance(op.lower, Alias) and not op.stateful


def _has_control(node: Node) -> bool:
    """Whether a loop or a branch is called: found before passes look into it."""
    return is_region(node) or any(map(_has_control, inner_nodes(node)))


def _is_foreign(node: Node) -> bool:
    """Whether a node is neither a kernel nor a call of Python: control flow, an effect."""
    op = op_of(node)
    if op is CONSTANT or op is placeholder or is_hosted(node):
        return False
    return isinstance(op.lower, Boundary) or is_region(node) or op.stateful
