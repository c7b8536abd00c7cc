"""Phase plans of drawn graphs against an evaluation node by node."""

from __future__ import annotations

import queue
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft import ops
from weft.errors import CompileError, FeedError, GraphError
from weft.ir.dtype import float32, string
from weft.ir.graph import Graph, toposort
from weft.ir.node import Node, Value
from weft.ops.call import trace
from weft.ops.resource.call import resource_call
from weft.ops.resource.spec import ResourceSpec
from weft.passes.phase import HostPhase, ProgramPhase, has_host_nodes, phases
from weft.passes.step import Request, predecessors
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


class Drawn:
    """A graph drawn from a seed, with its host nodes as given, and a request of it."""

    def __init__(self, seed: int, size: int, make: Callable[..., Node]) -> None:
        self.random = random.Random(seed)
        self.make = make
        self.graph = Graph()
        self.nodes: list[Node] = []
        self.ordered: dict[str, list[Node]] = {key: [] for key in KEYS}
        with self.graph.as_default():
            self.feeds = [ops.placeholder(dtype="float32", shape=()) for _ in range(2)]
            self.handles = [ops.variable(key=k, dtype="float32", shape=()) for k in KEYS]
            self.values = [*self.feeds, ops.constant(2.0)]
            for _ in range(size):
                self.add()

    def value(self) -> Value:
        """One of the last values, mostly."""
        return self.values[-1 - min(int(self.random.expovariate(0.4)), len(self.values) - 1)]

    def add(self) -> None:
        kind = self.random.choice(
            ("add", "mix", "mix", "wait", "wait", "later", "set", "read", "group")
        )
        some = [*[v.node for v in self.feeds], *self.nodes]
        before = [self.random.choice(some[-6:])] if self.random.random() < 0.3 else []
        number = self.random.randrange(2)
        handle, ordered = self.handles[number], self.ordered[KEYS[number]]
        if kind in ("later", "set"):  # after all of the variable so far
            before = [*ordered, *before]
        with self.graph.control_dependencies([] if kind == "read" else before):
            node = self.node(kind, handle)
        if kind in ("later", "set"):
            ordered.append(node)
        self.nodes.append(node)
        self.values.extend(node.outputs)

    def node(self, kind: str, handle: Value) -> Node:
        x, y = self.value(), self.value()
        match kind:
            case "add":
                return (x * 0.5 + y).node
            case "mix":
                return self.make(x, y)
            case "wait":
                return self.make(x, waits=True)
            case "set":
                return ops.assign(handle, x).node
            case "group":
                return ops.group.node((), {})
            case _:
                return ops.read(handle).node

    def request(self, fed: bool) -> Request:
        found = self.random.choices(self.nodes[-6:], k=3)
        fetches = tuple(dict.fromkeys(v for n in found for v in n.outputs))
        feeds = [*self.feeds, *(found[0].outputs if fed else ())]
        targets = tuple(n for n in found if not n.outputs)
        return Request(self.graph, fetches, targets, tuple(feeds))


def interpreted(request: Request) -> Interpreted:
    return Interpreted(request.graph, request.fetches, request.targets, request.feeds, request.done)


def compiled(request: Request) -> Function:
    return Function(
        request.graph, request.fetches, request.targets, request.feeds, 1, done=request.done
    )


def check(seed: int, size: int, fed: bool, program: Callable[[Request], Any]) -> None:
    request = Drawn(seed, size, host).request(fed)
    whole = Drawn(seed, size, inside).request(fed)
    arrays = [np.asarray(x, np.float32) for x in (3.0, 5.0, 11.0)][: len(request.feeds)]
    memory = Memory({key: np.asarray(i + 1.0, np.float32) for i, key in enumerate(KEYS)})
    state = State()
    for key, value in memory.variables.items():
        state[key] = value
    feeds = dict(zip(whole.feeds, arrays, strict=True))
    expected = evaluate(whole.graph, whole.fetches, feeds, memory, whole.targets)
    check_waits(request)
    found = Phased(request, program, call, Cancellation())(arrays, state)
    assert [float(x) for x in found] == [float(x) for x in expected]
    assert {k: float(state[k]) for k in KEYS} == {k: float(memory.variables[k]) for k in KEYS}


def check_waits(request: Request) -> None:
    """Phases come after what they wait for, and no node waits for one that it does not follow."""
    before, plan = predecessors(request), phases(request)
    behind: list[frozenset[Node]] = []  # the waiting nodes behind each phase
    for number, phase in enumerate(plan):
        assert all(i < number for i in phase.after)
        own = frozenset([phase.node] if isinstance(phase, HostPhase) and phase.waits else ())
        behind.append(own.union(*[behind[i] for i in phase.after]))
        if own:
            assert behind[-1] <= frozenset(toposort(request.graph, own, before))


SEEDS, SIZES = st.integers(0, 2**32), st.integers(1, 20)


@at_most(200)
@given(SEEDS, SIZES, st.booleans())
def test_phases_do_what_one_step_does(seed: int, size: int, fed: bool) -> None:
    check(seed, size, fed, interpreted)


@at_most(8)
@given(SEEDS, st.just(16))
def test_compiled_phases_do_what_one_step_does(seed: int, size: int) -> None:
    check(seed, size, False, compiled)


@pytest.mark.slow
@at_most(1200)
@given(SEEDS, st.integers(10, 40), st.booleans())
def test_phases_of_larger_graphs(seed: int, size: int, fed: bool) -> None:
    check(seed, size, fed, interpreted)


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


def test_the_latest_value_is_that_of_earlier_operations() -> None:
    graph = Graph()
    with graph.as_default():
        u = ops.variable(key="u", dtype="float32", shape=())
        changed = ops.assign(u, host(ops.constant(1.0) * 2.0).outputs[0])
        latest = ops.read(u, latest=True) * 1.0
    assert run(Request(graph, (latest,), (changed.node,)), initial(u=9.0)) == [mixed([2.0])]


def test_a_group_orders_what_is_computed_late() -> None:
    graph = Graph()
    with graph.as_default():
        u = ops.variable(key="u", dtype="float32", shape=())
        doubled = ops.read(u) * 2.0
        with graph.control_dependencies([doubled.node]):
            group = ops.group.node((), {})
        with graph.control_dependencies([group]):
            early = ops.assign(u, ops.constant(7.0))
        late = host(early).outputs[0] + doubled
    assert run(Request(graph, (late,)), initial(u=3.0)) == [mixed([7.0]) + 6.0]
