"""Requests, steps and partitions as the heads and arrays of messages; and back.

A graph is its text (`weft.ir.printer`), in which large constants are numbers of arrays. Attributes
that have no text, such as Python functions, are refused with the node's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import GraphError
from weft.ir.dtype import NAMED
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph, without_text
from weft.ops.boundary.host import Host
from weft.passes.partition import Partition, Stage
from weft.passes.step import Request, Step, needed

Array = np.ndarray[Any, Any]
Head = dict[str, Any]


def request_head(request: Request, aside: list[Array]) -> Head:
    """A request: only what it needs of its graph.

    Args:
        request: of a user's graph.
        aside: takes the large constants.

    Raises:
        GraphError: a node has an attribute without text, such as a Python function.
    """
    pruned = _Pruned(request)
    return {
        "graph": _graph_text(pruned.graph, aside),
        "fetches": [pruned.name(v) for v in request.fetches],
        "targets": [node.name for node in request.targets],
        "feeds": [pruned.name(v) for v in request.feeds],
        "placed": pruned.placed,
    }


def request_of(head: Head, aside: Sequence[Array]) -> Request:
    """The request that a head describes."""
    graph = parse_graph(head["graph"], aside)
    return Request(
        graph,
        tuple([_value(graph, name) for name in head["fetches"]]),
        tuple([graph.find(name) for name in head["targets"]]),
        tuple([_value(graph, name) for name in head["feeds"]]),
        frozenset(),
        {graph.find(name): device for name, device in head["placed"].items()},
    )


def step_head(step: Step, aside: list[Array]) -> Head:
    """A pure step."""
    return {
        "graph": _graph_text(step.graph, aside),
        "feeds": list(step.feeds),
        "updates": list(step.updates),
        "lasting": sorted(step.lasting),
        "repeated": step.repeated,
    }


def step_of(head: Head, aside: Sequence[Array]) -> Step:
    """The step that a head describes."""
    graph = parse_graph(head["graph"], aside)
    feeds, updates = tuple(head["feeds"]), tuple(head["updates"])
    return Step(graph, feeds, updates, frozenset(head["lasting"]), bool(head["repeated"]))


def partition_head(partition: Partition, own: set[str], aside: list[Array]) -> Head:
    """A partition for one task: the steps of other tasks' stages stay away.

    Args:
        partition: of all tasks.
        own: full names of the task's devices.
        aside: takes the large constants.
    """
    return {
        "stages": [_stage_head(stage, stage.device in own, aside) for stage in partition.stages],
        "feeds": list(partition.feeds),
        "fetches": list(partition.fetches),
        "types": [[kind.dtype.name, kind.shape] for kind in partition.types],
    }


def partition_of(head: Head, aside: Sequence[Array]) -> Partition:
    """The partition that a head describes; stages of other tasks have empty steps."""
    stages = tuple([_stage_of(one, aside) for one in head["stages"]])
    types = tuple([_type_of(*pair) for pair in head["types"]])
    return Partition(stages, tuple(head["feeds"]), tuple(head["fetches"]), types)


def _stage_head(stage: Stage, whole: bool, aside: list[Array]) -> Head:
    return {
        "device": stage.device,
        "step": step_head(stage.step, aside) if whole else None,
        "inputs": list(stage.inputs),
        "outputs": list(stage.outputs),
        "after": list(stage.after),
    }


def _stage_of(head: Head, aside: Sequence[Array]) -> Stage:
    step = Step(Graph(), (), ()) if head["step"] is None else step_of(head["step"], aside)
    inputs, outputs, after = tuple(head["inputs"]), tuple(head["outputs"]), tuple(head["after"])
    return Stage(head["device"], step, inputs, outputs, after)


def _type_of(dtype: str, shape: list[int | None] | None) -> TensorType:
    return TensorType(NAMED[dtype], None if shape is None else tuple(shape))


def _value(graph: Graph, name: str) -> Value:
    node, _, index = name.rpartition(":")
    return graph.find(node).outputs[int(index)]


def _graph_text(graph: Graph, aside: list[Array]) -> str:
    for outer in graph.nodes:
        if opaque := without_text(outer):
            node, name = opaque
            raise GraphError(
                f"{node.op}: {name} is {_kind(node.attrs[name])!r} of this process, and cannot be "
                f"sent to another task; use a session of a server in this process, and place the "
                f"operation on its task: {node.describe()}"
            )
    return format_graph(graph, aside=aside)


def _kind(value: Any) -> str:
    return type(value.function if isinstance(value, Host) else value).__name__


class _Pruned:
    """The part of a graph that a request needs, as a graph of its own.

    Fed values come from placeholders, of the names of their nodes if these do not run. Nodes that
    have acted before are not in it.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.graph = Graph()
        self.placed: dict[str, str] = {}
        self._nodes: dict[Node, Node] = {}
        self._fed: dict[Value, Value] = {}
        kept = needed(request)
        self._running = set(kept)
        for node in kept:
            self.graph.unique_name(node.name)
        for value in request.feeds:
            self._fed[value] = self._placeholder(value)
        for node in kept:
            self._keep(node)

    def name(self, value: Value) -> str:
        """The name of a value of the request's graph in this one."""
        return self._fed.get(value, value).name

    def _placeholder(self, value: Value) -> Value:
        node, kind = value.node, value.type
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        alone = node not in self._running and value.index == 0
        name = node.name if alone else self.graph.unique_name(f"{node.name}/fed")
        made = Node("placeholder", (), attrs, (kind,), name, source=node.source)
        return self.graph.append(made).outputs[0]

    def _keep(self, node: Node) -> None:
        inputs = tuple([self._mapped(v) for v in node.inputs])
        before = (*node.control, *self._request.graph.edges.get(node, ()))
        control = tuple(dict.fromkeys([self._nodes[n] for n in before if n in self._running]))
        new = self._nodes[node] = self.graph.append(node.with_inputs(inputs, control))
        if new.device != (device := self._request.placed.get(node, new.device)):
            self.placed[new.name] = device

    def _mapped(self, value: Value) -> Value:
        fed = self._fed.get(value)
        return self._nodes[value.node].outputs[value.index] if fed is None else fed
