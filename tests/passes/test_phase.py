"""Phase plans of drawn graphs against an evaluation node by node."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import ops
from weft.errors import CompileError, FeedError, GraphError
from weft.ir.dtype import float32, string
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ops.call import trace
from weft.ops.resource.call import resource_call
from weft.ops.resource.spec import ResourceSpec
from weft.passes.phase import HostPhase, ProgramPhase, has_host_nodes, phases
from weft.passes.step import Request
from weft.resource.base import Cancellation
from weft.runtime.engine import Function
from weft.runtime.interpreted import Interpreted
from weft.runtime.memory.state import State
from weft.runtime.phased import Phased
from weft.transform.interpreter import Memory, evaluate

SPEC = ResourceSpec("Mixer", "mixer")
KEYS = ("u", "v")


def mixed(xs: Sequence[Any]) -> np.ndarray[Any, Any]:
    return np.asarray(sum((i + 1) * float(x) for i, x in enumerate(xs)) % 7 + 1, np.float32)


def host(*xs: Value, waits: bool = False, method: str = "mix") -> Node:
    attrs = {"resource": SPEC, "method": method, "dtypes": (float32,), "shapes": ((),)}
    return resource_call.node(xs, {**attrs, "waits": waits})


def inside(*xs: Value, waits: bool = False) -> Node:
    """The same call, in the middle of a program."""
    del waits
    attrs = {"function": lambda *xs: mixed(xs), "dtypes": (float32,), "shapes": ((),)}
    return ops.host_call.node(xs, attrs)


def call(node: Node, xs: Sequence[Any], cancel: Cancellation) -> list[Any]:
    cancel.check()
    assert node.attrs["method"] == "mix"
    return [mixed(xs)]


def interpreted(request: Request) -> Interpreted:
    return Interpreted(request.graph, request.fetches, request.targets, request.feeds, request.done)


class Drawn:
    """A graph built from drawn numbers, with its host nodes as given."""

    def __init__(self, choices: Sequence[tuple[int, int, int, int]], make: Callable[..., Node]):
        self.graph = Graph()
        self.values: list[Value] = []
        self.nodes: list[Node] = []
        self.ordered: dict[str, list[Node]] = {key: [] for key in KEYS}
        with self.graph.as_default():
            self.feeds = [ops.placeholder(dtype="float32", shape=()) for _ in range(2)]
            self.handles = [ops.variable(key=k, dtype="float32", shape=()) for k in KEYS]
            self.values += [*self.feeds, ops.constant(2.0)]
            for choice in choices:
                self.add(choice, make)

    def add(self, choice: tuple[int, int, int, int], make: Callable[..., Node]) -> None:
        kind, i, j, k = choice
        x, y = self.values[i % len(self.values)], self.values[j % len(self.values)]
        some = [*[v.node for v in self.feeds], *self.nodes]
        before = [some[k % len(some)]] if k % 3 == 0 else []
        handle, key = self.handles[k % 2], KEYS[k % 2]
        if kind == 3:  # ordered after all assignments so far
            with self.graph.control_dependencies([*self.ordered[key], *before]):
                node = ops.read(handle).node
            self.ordered[key].append(node)
        elif kind == 4:
            with self.graph.control_dependencies([*self.ordered[key], *before]):
                node = ops.assign(handle, x).node
            self.ordered[key].append(node)
        elif kind == 5:
            node = ops.read(handle).node
        elif kind == 6:
            with self.graph.control_dependencies([*before]):
                node = ops.group.node((), {})
        else:
            with self.graph.control_dependencies(before):
                node = {
                    0: lambda: (x + y).node,
                    1: lambda: (x * 0.5 + y).node,
                    2: lambda: make(x, y),
                    7: lambda: make(x, waits=True),
                }[kind]()
        self.nodes.append(node)
        self.values.extend(node.outputs)


choices = st.lists(st.tuples(st.integers(0, 7), *[st.integers(0, 30)] * 3), min_size=1, max_size=14)


def asked(drawn: Drawn, picks: Sequence[int], fed: bool) -> Request:
    found = [drawn.nodes[p % len(drawn.nodes)] for p in picks]
    fetches = tuple(dict.fromkeys(v for n in found for v in n.outputs))
    targets = tuple(n for n in found if not n.outputs)
    feeds = [*drawn.feeds]
    if fed:
        feeds += [v for v in found[0].outputs[:1]]
    return Request(drawn.graph, fetches, targets, tuple(feeds))


@settings(max_examples=150, deadline=None)
@given(choices, st.lists(st.integers(0, 30), min_size=1, max_size=4), st.booleans())
def test_phases_do_what_one_step_does(
    drawn: list[tuple[int, int, int, int]], picks: list[int], fed: bool
) -> None:
    ours, oracle = Drawn(drawn, host), Drawn(drawn, inside)
    request, whole = asked(ours, picks, fed), asked(oracle, picks, fed)
    arrays = [np.asarray(x, np.float32) for x in (3.0, 5.0, 11.0)][: len(request.feeds)]
    memory = Memory({key: np.asarray(i + 1.0, np.float32) for i, key in enumerate(KEYS)})
    state = State()
    for key, value in memory.variables.items():
        state[key] = value
    expected = evaluate(
        whole.graph, whole.fetches, dict(zip(whole.feeds, arrays, strict=True)), memory,
        whole.targets,
    )  # fmt: skip
    found = Phased(request, interpreted, call, Cancellation())(arrays, state)
    assert [float(x) for x in found] == [float(x) for x in expected]
    assert {k: float(state[k]) for k in KEYS} == {k: float(memory.variables[k]) for k in KEYS}


def programs(request: Request) -> list[Request]:
    return [p.request for p in phases(request) if isinstance(p, ProgramPhase)]


def run(request: Request, state: State, *arrays: float) -> list[Any]:
    given = [np.asarray(x, np.float32) for x in arrays]
    return Phased(request, interpreted, call, Cancellation())(given, state)


def initial(**values: float) -> State:
    state = State()
    state.update({key: np.asarray(x, np.float32) for key, x in values.items()})
    return state


def test_an_unordered_read_sees_the_value_before_the_run() -> None:
    graph = Graph()
    with graph.as_default():
        u = ops.variable(key="u", dtype="float32", shape=())
        early = ops.assign(u, ops.constant(5.0))
        late = host(ops.read(u) * 1.0).outputs[0] + ops.read(u)
    request = Request(graph, (late, early))
    assert len(programs(request)) == 2
    assert run(request, initial(u=2.0), *()) == [mixed([2.0]) + 2.0, 5.0]


def test_an_update_reads_what_it_updates_in_its_own_program() -> None:
    """Another run may have updated the variable since the first phase."""
    graph = Graph()
    with graph.as_default():
        u = ops.variable(key="u", dtype="float32", shape=())
        grown = ops.read(u, latest=True) * 2.0
        found = host(host(ops.constant(1.0)).outputs[0] * 1.0).outputs[0]
        update = ops.assign(u, grown + found)
    request = Request(graph, (), (update.node,))
    first, second = programs(request)
    assert [v.node for v in second.feeds] == [found.node]
    assert not [v for v in first.fetches if v.node in (grown.node, u.node)]
    state = initial(u=3.0)
    run(request, state)
    assert state["u"] == 6.0 + mixed([mixed([1.0])])


def test_constants_and_handles_do_not_cross() -> None:
    graph = Graph()
    with graph.as_default():
        u = ops.variable(key="u", dtype="float32", shape=())
        c = ops.constant(4.0)
        x = host(ops.read(u) + c).outputs[0]
        y = ops.assign(u, x * c)
    first, second = programs(Request(graph, (y,)))
    assert first.feeds == ()
    assert second.feeds == (x,)
    assert run(Request(graph, (y,)), initial(u=1.0)) == [mixed([5.0]) * 4.0]


def test_what_host_nodes_give_first_makes_one_program() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=())
        y = host(x).outputs[0] + host(ops.constant(2.0)).outputs[0] * x
        summary = host(y)
    plan = phases(Request(graph, (), (summary,), (x,)))
    assert [type(p) for p in plan] == [HostPhase, HostPhase, ProgramPhase, HostPhase]
    assert plan[2].after == (0, 1)
    assert plan[3].after == (2,)


def test_a_node_that_waits_is_not_behind_the_program_of_another_one() -> None:
    """The second dequeue waits for an enqueue that the first program computes."""
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=())
        taken = host(waits=True, method="take").outputs[0]
        given = host(x * 3.0, waits=True, method="give")
        y = taken + 1.0
    request = Request(graph, (y,), (given,), (x,))
    assert len(programs(request)) == 2
    box: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def meet(node: Node, xs: Sequence[Any], cancel: Cancellation) -> list[Any]:
        if node.attrs["method"] == "give":
            box.put(xs[0])
            return [np.float32(0)]
        return [box.get(timeout=10)]

    phased = Phased(request, interpreted, meet, Cancellation())
    assert phased([np.asarray(2.0, np.float32)], State()) == [7.0]


def test_host_nodes_inside_a_branch_are_refused() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=())
        branch = trace(lambda x: host(x).outputs[0], [x.type])
        y = ops.switch.all(ops.constant(0, "int32"), x, branches=(branch, branch))[0]
    with pytest.raises(GraphError, match=r"switch: .* got resource_call, .*test_phase.py:\d+"):
        has_host_nodes(Request(graph, (y,), (), (x,)))


def test_bad_requests() -> None:
    graph = Graph()
    with graph.as_default():
        text = ops.placeholder(dtype=string, shape=(), name="text")
        same = ops.identity(text)
        loose = host()
    assert has_host_nodes(Request(graph, (text,), (), (text,)))
    with pytest.raises(FeedError, match=r"'text' must be fed: text \(created at .*\)"):
        phases(Request(graph, (same,)))
    with pytest.raises(CompileError, match=r"resource_call: .* runs on the host"):
        Function(graph, loose.outputs)([], State())
