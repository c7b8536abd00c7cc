"""From records to a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from weft.eager.record.call.placed_type import device_of, full_name
from weft.eager.record.call.plan import accepted_input, placeholders
from weft.eager.record.listing.backward_calls import SPLIT, Fill, Key, Step, type_at
from weft.eager.record.listing.listing import Calls
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import Structure, is_cut, meet_values
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.library.routine import NoRoutineError
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.shape.creation import ones_like, zeros_like
from weft.transform.gradient import Cotangent, dense, gradients


@dataclass(frozen=True)
class Expanded:
    """The graph of a structure: one value for each leaf and each output.

    Attributes:
        begins: for each record the position of its first node.
        rows: positions of the outputs that are two values, indices and rows of a row-sparse array.
    """

    graph: Graph
    feeds: tuple[Value, ...]
    outputs: tuple[Value, ...]
    begins: tuple[int, ...]
    rows: frozenset[int] = frozenset()


def expand(structure: Structure, as_rows: bool = False) -> Expanded:
    """The graph of a structure.

    A backward pass is the gradients of its calls, one after another, as it is in the library: so
    cotangents are added up in one order in every tier.

    Args:
        as_rows: keep row-sparse outputs as they are if no gradient flows through them.
    """
    meet_values(structure)
    if any([r.plan.follows for r in structure.records]):
        with contextlib.suppress(NoRoutineError):
            return _ByCalls(structure, Calls(structure)).expanded()
    return _by_records(structure, as_rows)


class _ByCalls:
    """The graph of a structure, with the gradients of calls one after another."""

    def __init__(self, structure: Structure, calls: Calls) -> None:
        self._structure = structure
        self._calls = calls
        self._env: dict[Key, Cotangent] = {}
        self._same: dict[Key, Lazy] = dict(structure.same)

    def expanded(self) -> Expanded:
        """The graph."""
        structure, env = self._structure, self._env
        produced = {y for r in structure.records for y in r.outputs}
        given = [x for x in structure.leaves if x not in produced]
        begins: list[int] = []
        graph = Graph()
        with graph.as_default():
            with graph.at(structure.records[0].source):
                env.update(zip(given, placeholders([x.type for x in given]), strict=True))
            for record, steps in zip(structure.records, self._calls.gradients, strict=True):
                begins.append(len(graph.nodes))
                self._add(graph, record, steps)
            outputs = tuple([dense(self._value(y)) for y in structure.outputs])
            feeds = tuple([dense(env[x]) for x in structure.leaves])
        return Expanded(graph, feeds, outputs, tuple(begins))

    def _add(self, graph: Graph, record: Record, steps: Sequence[Step]) -> None:
        """The nodes of a call, or of a backward pass."""
        device = _device(record) if any(self._structure.devices) else ""
        with graph.at(record.source), graph.device(device):
            if not record.plan.follows:
                values = [accepted_input(self._value(x), record.plan) for x in record.inputs]
                found = record.plan.expand(*values)
                self._env.update(zip(self._calls.results[record], found, strict=True))
            for step in steps:
                found = _gradient(step, [dense(self._value(x)) for x in step.inputs])
                self._env.update(zip(step.outputs, found, strict=True))

    def _value(self, key: Key) -> Cotangent:
        key = self._calls.key(key)
        found = self._env.get(key)
        if found is None and key in self._same:  # it has the array of a leaf, or of a result
            found = catalogue.stop_gradient(dense(self._value(self._same[key])))
            self._env[key] = found
        if found is None:  # a constant, such as the cotangent at the start
            assert isinstance(key, Fill)
            like = dense(self._value(key.record.inputs[key.place]))
            found = self._env[key] = ones_like(like) if key.number else zeros_like(like)
        return found


def _gradient(step: Step, values: Sequence[Value]) -> Sequence[Value]:
    """The nodes of a gradient, or of a sum of cotangents."""
    pull = step.way.pull
    if step.way.parts == SPLIT:
        shapes = [known(type_at(step.record, place).shape) for place in step.way.places]
        if step.record.plan.pattern.called is REGISTRY["stack"]:
            return catalogue.unstack.all(values[0], count=len(shapes), axis=0)
        return catalogue.split.all(values[0], sizes=[shape[0] for shape in shapes], axis=0)
    if pull is None:
        return [catalogue.add_n(*values)]
    count = len(step.record.inputs)
    xs, ys = values[:count], values[count : count + len(pull.given)]
    targets = [x for x, wanted in zip(xs, pull.wanted, strict=True) if wanted]
    outputs = [y for y, has in zip(ys, pull.given, strict=True) if has]
    found = gradients(outputs, targets, values[count + len(ys) :], stop=xs)
    return [dense(g) for g in found if g is not None]


def _by_records(structure: Structure, as_rows: bool) -> Expanded:
    """The graph, with each backward pass as one."""
    graph = Graph()
    memory = _Memory(structure)
    env = memory.env
    produced = {y for r in structure.records for y in r.outputs}
    placed = any(structure.devices)
    with graph.as_default():
        with graph.at(structure.records[0].source if structure.records else None):
            for lazy in structure.leaves:
                if lazy not in produced:
                    memory.enter(lazy)
        begins: list[int] = []
        last = max([r.serial for r in structure.records if r.plan.follows], default=-1)
        stop = catalogue.stop_gradient
        for record in structure.records:
            begins.append(len(graph.nodes))
            values = [accepted_input(memory.value(lazy), record.plan) for lazy in record.inputs]
            with graph.at(record.source), graph.device(_device(record) if placed else ""):
                found = record.plan.expand(*values)
                if record.serial < last and is_cut(record):
                    found = [stop(y) if isinstance(y, Value) else y for y in found]
            env.update(record.paired(found))
        outputs: list[Value] = []
        rows: set[int] = set()
        for i, y in enumerate(structure.outputs):
            found = env[y]
            if as_rows and isinstance(found, RowSparse) and y.home is None and not y.tracked:
                outputs += [found.indices, found.values]
                rows.add(i)
            else:
                outputs.append(dense(found))
        feeds = tuple([memory.fed(lazy) for lazy in structure.leaves])
    return Expanded(graph, feeds, tuple(outputs), tuple(begins), frozenset(rows))


def _device(record: Record) -> str:
    """The device of a record's nodes; of a gradient's, each is where its operation is."""
    plan = record.plan
    return "" if plan.follows or not plan.types else full_name(device_of(plan.types[0]))


class _Memory:
    """The nodes of values; values that share memory share a placeholder.

    No gradient flows from a detached value to its base.
    """

    def __init__(self, structure: Structure) -> None:
        self.env: dict[Lazy, Cotangent] = {}
        self._placeholders: dict[Lazy, Value] = {}
        self._first = dict(structure.same)
        self._shown_by_tracked = {first for x, first in structure.same if x.tracked}

    def enter(self, leaf: Lazy) -> None:
        """Add the placeholder of a leaf."""
        (found,) = placeholders((leaf.type,))
        self._placeholders[leaf] = found
        is_detached = leaf in self._shown_by_tracked and not leaf.tracked
        self.env[leaf] = catalogue.stop_gradient(found) if is_detached else found

    def value(self, lazy: Lazy) -> Cotangent:
        """The node of a value that a record reads."""
        found = self.env.get(lazy)
        if found is None:
            first = self._first[lazy]
            found = self.fed(first)
            if not lazy.tracked and (first.tracked or first in self._shown_by_tracked):
                found = catalogue.stop_gradient(found)
            self.env[lazy] = found
        return found

    def fed(self, leaf: Lazy) -> Value:
        """The placeholder that a leaf's array is fed to."""
        found = self._placeholders.get(leaf)
        return dense(self.env[leaf]) if found is None else found
