"""Partition: one optimized step becomes one program a device and the values sent between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.errors import GraphError
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, TensorType, Value
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes import pipeline
from weft.passes.staging.build import TOKEN, Draft, Drafts, Given, Token, graph_of
from weft.passes.staging.cut import positions
from weft.passes.staging.level import Layout, Levels
from weft.passes.staging.repeat import repeat_cheap
from weft.passes.step import Step


@dataclass(frozen=True)
class Stage:
    """A part of a step that one device computes without waiting for another.

    Attributes:
        device: its full name.
        step: its graph: feeds are `inputs`, fetches are `outputs`, updates are variables of the
            device.
        inputs: numbers of the values that it receives, in the order of the step's feeds.
        outputs: numbers of the values that it sends or that are fetched, in the order of fetches.
        after: stages, by position, that must be done before it begins although it receives
            nothing from them: they read a variable that it changes.
    """

    device: str
    step: Step
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Partition:
    """A step over several devices: stages in an order in which they can run one by one.

    Values are numbered: those that are fed, then those that stages give.

    Attributes:
        stages: of all devices.
        feeds: the number of each feed of the step.
        fetches: the number of each fetch.
        types: of all values, by number.
    """

    stages: tuple[Stage, ...]
    feeds: tuple[int, ...]
    fetches: tuple[int, ...]
    types: tuple[TensorType, ...]

    def readers(self, value: int) -> tuple[str, ...]:
        """The devices whose stages receive a value, each once."""
        return tuple(dict.fromkeys(s.device for s in self.stages if value in s.inputs))


def partition(
    step: Step, device_of: Mapping[Node, str], homes: Mapping[str, str] | None = None,
    early: bool = True,
) -> Partition:  # fmt: skip
    """Cuts an optimized step into the stages of its devices.

    Args:
        device_of: the full name of the device of each node.
        homes: that of each variable, by key; needed for those that are only assigned.
        early: whether to cut where a value is ready that another device waits for. It is of no
            use where devices share processors.

    Raises:
        GraphError: the home of a variable is not told, or a loop cannot be cut from its gradient.
    """
    layout = Layout(step, device_of, _homes(step, device_of, homes or {}))
    levels = Levels(layout)
    places, stores = positions(levels, early)
    drafts = Drafts(layout, places, stores)
    repeat_cheap(drafts, pipeline.grouped)
    drafts.wait([(places[a], places[b]) for a, b in levels.ordered])
    drafts.wait([(places[check], store) for store in stores.values() for check in levels.checks])
    return _numbered(drafts)


def asking(step: Step, default: str) -> Step:
    """The same step, whose nodes on the default device ask for none."""

    def rule(node: Node, out: Graph) -> Sequence[Value] | None:
        if not node.device or node.device != default:
            return None
        plain = Node(
            node.op, node.inputs, node.attrs, node.types, node.name, node.operands, node.control,
            "", node.source, node.regions,
        )  # fmt: skip
        return out.append(plain).outputs

    return step.with_graph(rewrite(step.graph, rule))


def _homes(step: Step, device_of: Mapping[Node, str], told: Mapping[str, str]) -> Mapping[str, str]:
    read = {n.attrs["key"]: device_of[n] for n in step.graph.nodes if op_of(n) is variable}
    found = {**read, **told}
    for key in step.updates:
        if key not in found:
            raise GraphError(f"partition: expected the device of the variable {key!r}, got none")
    return found


def _numbered(drafts: Drafts) -> Partition:
    step = drafts.layout.step
    feeds = [step.graph.find(name).outputs[0] for name in step.feeds]
    numbers: dict[Given, int] = {value: number for number, value in enumerate(feeds)}
    stages = drafts.in_order()
    for draft in stages:
        for item in draft.given:
            numbers[item] = len(numbers)
    return Partition(
        tuple([
            Stage(
                draft.position.device,
                graph_of(drafts, draft),
                tuple([numbers[x] for x in draft.received]),
                tuple([numbers[x] for x in draft.given]),
                _before(drafts, stages, draft),
            )
            for draft in stages
        ]),
        tuple(range(len(feeds))),
        tuple([numbers[v] for v in step.fetches]),
        tuple([TOKEN if isinstance(x, Token) else x.type for x in numbers]),
    )  # fmt: skip


def _before(drafts: Drafts, stages: Sequence[Draft], draft: Draft) -> tuple[int, ...]:
    """The stages, by position, that read a variable which this one changes."""
    layout = drafts.layout
    keys = {key for key in draft.stores}

    def reads(other: Draft) -> bool:
        read = [v for n in other.nodes for v in n.inputs]
        given = [x for x in other.given if not isinstance(x, Token)]
        return any(layout.key_of(v) in keys for v in (*read, *given))

    return tuple([
        i for i, other in enumerate(stages)
        if keys and other is not draft and other.position.device == draft.position.device
        and reads(other)
    ])  # fmt: skip
