"""The stages of a step whose nodes have been given positions: their graphs, and what they exchange.

A position is a level, the number of a piece of that level, and a device: stages run in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from weft.errors import GraphError
from weft.ir.dtype import bool_
from weft.ir.graph import Graph
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.shape import is_stack
from weft.ops.boundary.state import placeholder, variable
from weft.ops.declaration import op_of
from weft.ops.effect import has_effect
from weft.passes.staging.level import Layout
from weft.passes.step import Step


class Position(NamedTuple):
    """The place of a stage in the order of all stages."""

    level: int
    piece: int
    device: str


class Token(NamedTuple):
    """What a stage gives only so that another one waits for it."""

    giver: Position


Given = Value | Token
"""What a stage gives to others."""


@dataclass
class Draft:
    """A stage under construction.

    Attributes:
        nodes: what it computes, in order.
        again: what it computes although another stage does.
        stores: keys of the variables that it changes.
        received: what others give it.
        given: what it gives to others, or to the caller.
    """

    position: Position
    nodes: list[Node] = field(default_factory=list[Node])
    again: dict[Node, None] = field(default_factory=dict[Node, None])
    stores: list[str] = field(default_factory=list[str])
    received: dict[Given, None] = field(default_factory=dict[Given, None])
    given: dict[Given, None] = field(default_factory=dict[Given, None])


class Drafts:
    """All stages of a step, and what they exchange.

    Args:
        places: the position of each computed node.
        stores: the position at which each variable is changed.

    Raises:
        GraphError: a loop that acts outside the program, whose results other stages need, but of
            which only a run tells how many rows they have.
    """

    def __init__(
        self, layout: Layout, places: Mapping[Node, Position], stores: Mapping[str, Position]
    ) -> None:
        self.layout, self.places, self.stores = layout, places, stores
        self.drafts: dict[Position, Draft] = {}
        for node, position in places.items():
            self._at(position).nodes.append(node)
        new = layout.step.new_values
        for key, position in stores.items():
            self._at(position).stores.append(key)
        for draft in list(self.drafts.values()):
            for value in [v for node in draft.nodes for v in node.inputs]:
                self._receive(draft, value)
            for key in draft.stores:
                self._receive(draft, new[key])
        for value in layout.step.fetches:
            if op_of(value.node) is not placeholder:
                self._at(self.giver(value)).given[value] = None

    def in_order(self) -> list[Draft]:
        """The stages, in an order in which they can run one by one."""
        return [self.drafts[p] for p in sorted(self.drafts)]

    def wait(self, pairs: Iterable[tuple[Position, Position]]) -> None:
        """Lets the second stage of each pair begin after the first one is done."""
        for first, second in sorted(set(pairs), key=lambda pair: pair[::-1]):
            if first != second and first not in self._before()[second]:
                token = Token(first)
                self._at(first).given[token] = None
                self._at(second).received[token] = None

    def repeat(self, value: Value, readers: Iterable[Draft]) -> None:
        """Lets stages compute a value again that they would have received."""
        for draft in readers:
            del draft.received[value]
            self._repeat(draft, value.node)

    def settle(self) -> None:
        """Removes what no stage needs any more."""
        given = {draft.position: list(draft.given) for draft in self.in_order()}
        wanted: set[Given] = set(self.layout.step.fetches)
        for draft in reversed(self.in_order()):
            draft.given = dict.fromkeys([
                x for x in given[draft.position] if x in wanted or isinstance(x, Token)
            ])  # fmt: skip
            needed = self._needed(draft)
            draft.nodes = [n for n in draft.nodes if n in needed]
            draft.again = {n: None for n in draft.again if n in needed}
            read = {v for n in (*draft.nodes, *draft.again) for v in n.inputs}
            read |= {self.layout.step.new_values[key] for key in draft.stores}
            draft.received = {
                x: None for x in draft.received if isinstance(x, Token) or x in read
            }  # fmt: skip
            wanted.update(draft.received)
            if not (draft.given or draft.stores):
                del self.drafts[draft.position]

    def _needed(self, draft: Draft) -> set[Node]:
        """The nodes that a stage has to compute."""
        here = {*draft.nodes, *draft.again}
        new = self.layout.step.new_values
        roots = [x for x in draft.given if isinstance(x, Value)]
        waiting = [v.node for v in (*roots, *[new[key] for key in draft.stores])]
        found: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in here and node not in found:
                found.add(node)
                waiting += [v.node for v in node.inputs]
        return found

    def _before(self) -> dict[Position, set[Position]]:
        """The stages that are done before each one begins, whatever happens."""
        found: dict[Position, set[Position]] = {}
        last: dict[str, Position] = {}
        for draft in self.in_order():
            position = draft.position
            direct = [self.giver(x) for x in draft.received if not _is_fed(x)]
            if position.device in last:
                direct.append(last[position.device])
            found[position] = {p for d in direct for p in (d, *found[d])}
            last[position.device] = position
        return found

    def giver(self, item: Given) -> Position:
        """The stage that gives a value to others."""
        if isinstance(item, Token):
            return item.giver
        node = item.node
        if node in self.places:
            return self.places[node]
        if op_of(node) is variable:
            return Position(0, 0, self.layout.home(node.attrs["key"]))
        return Position(0, 0, self.layout.device_of[node])  # a constant that is fetched

    def _receive(self, draft: Draft, value: Value) -> None:
        """Lets a stage have a value that it reads."""
        node, position = value.node, draft.position
        if op_of(node) is variable:
            here = self.layout.home(node.attrs["key"]) == position.device
        else:
            here = node in self.layout.copied or self.places.get(node) == position
            here = here or node in draft.again
        if here:
            return
        if is_stack(value.shape) and not _is_fed(value):
            self._repeat(draft, node)
            return
        draft.received[value] = None
        if not _is_fed(value):
            self._at(self.giver(value)).given[value] = None

    def _repeat(self, draft: Draft, node: Node) -> None:
        """Computes a node once more, as only its stage knows how many rows it gives."""
        if has_effect(node):
            raise GraphError(
                f"partition: {node.describe()} acts outside the program, and of its results only "
                "a run tells how many rows they have; expected all that needs them, such as its "
                "gradient, on its device, and nothing on other devices in between"
            )
        if node not in draft.again:
            draft.again[node] = None
            for value in node.inputs:
                self._receive(draft, value)

    def _at(self, position: Position) -> Draft:
        return self.drafts.setdefault(position, Draft(position))


def _is_fed(item: Given) -> bool:
    return isinstance(item, Value) and op_of(item.node) is placeholder


def graph_of(drafts: Drafts, draft: Draft) -> Step:
    """The step that a stage computes: feeds are what it receives, fetches what it gives."""
    return _Writer(drafts, draft).step()


class _Writer:
    """Writes the graph of one stage."""

    def __init__(self, drafts: Drafts, draft: Draft) -> None:
        self.drafts, self.draft = drafts, draft
        self.out = Graph()
        self.mapped: dict[Value, Value] = {}

    def step(self) -> Step:
        """The step."""
        draft, whole = self.draft, self.drafts.layout.step
        feeds = [self._feed(number, item) for number, item in enumerate(draft.received)]
        for node in draft.nodes:
            self._append(node)
        given = [self._given(item) for item in draft.given]
        new = [self._here(whole.new_values[key]) for key in draft.stores]
        self.out.outputs = (*given, *new)
        lasting = whole.lasting & set(feeds)
        return Step(self.out, tuple(feeds), tuple(draft.stores), lasting, whole.repeated)

    def _feed(self, number: int, item: Given) -> str:
        if isinstance(item, Token):
            name, kind, source = f"wait{number}", TOKEN, None
        else:
            fed = op_of(item.node) is placeholder
            name = item.node.name if fed else f"receive/{item.node.name}/{item.index}"
            kind, source = item.type, item.node.source
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        node = Node("placeholder", (), attrs, (kind,), name, source=source)
        self.out.append(node)
        if not isinstance(item, Token):
            self.mapped[item] = node.outputs[0]
        return name

    def _append(self, node: Node) -> None:
        inputs = tuple([self._here(v) for v in node.inputs])
        new = self.out.append(node.with_inputs(inputs))
        self.mapped.update(zip(node.outputs, new.outputs, strict=True))

    def _here(self, value: Value) -> Value:
        """A value in this graph; variables and copied constants are added on first use."""
        if value not in self.mapped:
            self._append(value.node)
        return self.mapped[value]

    def _given(self, item: Given) -> Value:
        if not isinstance(item, Token):
            return self._here(item)
        attrs = {"value": Literal(np.zeros((), np.bool_))}
        return self.out.add("constant", (), attrs, (TOKEN,), "done").outputs[0]


TOKEN = TensorType(bool_, ())
