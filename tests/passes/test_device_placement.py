"""Placement: constraints of the user's graph, and the cost model for free nodes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from weft import ops
from weft.errors import ArgumentError
from weft.ir.device import DeviceName
from weft.ir.dtype import float32
from weft.ir.graph import Graph, current_graph
from weft.ir.node import Node, TensorType, Value
from weft.ops.call import trace
from weft.ops.resource.spec import ResourceSpec
from weft.passes import pipeline
from weft.passes.placement.choose import choose, link_between
from weft.passes.placement.cost import LOCAL, REMOTE, Link
from weft.passes.placement.place import Placed, place
from weft.passes.step import Request, Step

NAMES = [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2)]
LOCALS = list(map(DeviceName.parse, NAMES))
CLUSTER = [
    DeviceName.parse(f"/job:{job}/replica:0/task:{task}/device:CPU:0")
    for job, task in (("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1))
]


def here(error: str) -> str:
    """A pattern of an error whose lines are in this file."""
    return re.escape(error).replace("LINE", r"test_device_placement\.py:\d+")


def on(placed: Placed, node: Node | Value) -> str | None:
    """The end of the name of a node's device."""
    found = placed.devices.get(node.node if isinstance(node, Value) else node)
    return None if found is None else found.rpartition("device:")[2]


def variable(key: str = "v") -> Value:
    return ops.variable(key=key, dtype="float32", shape=())


def test_partial_names_are_met_near_the_default_device():
    graph = Graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            a = variable("a")
        free = ops.constant(np.float32(1))
        asked = {}
        for name in ("/cpu:0", "/job:ps", "/job:ps/task:1", "/job:worker"):
            with graph.device(name):
                asked[name] = ops.tanh(free)
    assert on(place(Graph(graph.nodes[:1]), LOCALS), a) == "CPU:1"
    placed = place(Graph(graph.nodes[1:]), CLUSTER, default=CLUSTER[1]).devices
    assert [placed[x.node].split("/device")[0] for x in asked.values()] == [
        "/job:worker/replica:0/task:1", "/job:ps/replica:0/task:0",
        "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:1",
    ]  # fmt: skip
    assert free.node not in placed


def test_what_sessions_share_has_one_home_whichever_task_they_ask():
    graph, queue = Graph(), ResourceSpec("FIFOQueueV2", "q")
    with graph.as_default():
        made = {}
        for name in ("", "/cpu:0", "/task:1", "/job:worker"):
            with graph.device(name):
                made[name] = variable(name or "free")
        local = variable("local")
        call = ops.resource_call(resource=queue, method="handle", dtypes=("int32",), shapes=((),))
        stream = ops.counter(key="stream")
    placed = place(graph, CLUSTER, default=CLUSTER[1], own={"local"})
    own, first, second = (str(CLUSTER[number].of_task) for number in (1, 2, 3))
    ends = [placed.devices[x.node].split("/device")[0] for x in (*made.values(), call)]
    assert ends == [first, first, second, own, first]
    assert [placed.devices[x.node].split("/device")[0] for x in (local, stream)] == [own, own]
    assert set(placed.homes) == {"free", "/cpu:0", "/task:1", "/job:worker", "local", "stream"}


def test_a_variable_has_its_reads_and_assigns_with_it():
    graph = Graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            v = variable()
        read, done = ops.read(v), ops.assign(v, ops.constant(np.float32(1)))
        free = variable("free")
        with graph.device("/cpu:0"):
            far = ops.read(v)  # its value is sent
        again = variable()  # the same variable
    placed = place(graph, LOCALS)
    assert [on(placed, x) for x in (v, read, done, again)] == ["CPU:1"] * 4
    assert [on(placed, x) for x in (free, far)] == ["CPU:0"] * 2
    assert placed.homes == {"v": NAMES[1], "free": NAMES[0]}
    assert placed.reasons[v.node] == "asked for /device:CPU:1"
    assert placed.reasons[done.node] == "assigns variable"
    assert placed.reasons[free.node] == "the first by name, as sessions share it"


def test_colocated_nodes_are_together():
    graph = Graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            a = ops.constant(np.float32(1))
        b, c = ops.tanh(a), ops.exp(a)
    graph.colocate([b.node], [c.node])
    assert on(place(graph, LOCALS), b) is None
    graph.colocate([c.node], [a.node])
    placed = place(graph, LOCALS)
    assert [on(placed, x) for x in (a, b, c)] == ["CPU:1"] * 3
    assert placed.reasons[b.node] == "is colocated with exp"


def test_contradictions_name_both_nodes_and_their_lines():
    graph = Graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            v = variable()
        with graph.device("/cpu:0"):
            ops.assign(v, ops.constant(np.float32(1)))
    message = (
        "device: variable (created at LINE) asks for /device:CPU:1, but assign (created at LINE) "
        "asks for /device:CPU:0; expected one device for both, because assign (created at LINE) "
        "assigns variable (created at LINE)"
    )
    with pytest.raises(ArgumentError, match=here(message)):
        place(graph, LOCALS)
    soft = place(graph, LOCALS, soft=True)
    assert on(soft, v) == "CPU:1"  # the first one that was asked for


def test_a_body_is_with_its_loop_and_may_not_ask_for_two_devices():
    def build(*devices: str) -> tuple[Graph, Node]:
        graph = Graph()
        kinds = [TensorType(float32, ())]

        def body(x: Value) -> list[Value]:
            for device in devices:
                with current_graph().device(device):
                    x = ops.tanh(x)
            return [x]

        with graph.as_default():
            x = ops.placeholder(dtype="float32", shape=())
            y = ops.scan.all(x, body=trace(body, kinds), length=3, carried=1, mapped=0)[0]
        return graph, y.node

    graph, loop = build("/cpu:1", "/cpu:1")
    placed = place(graph, LOCALS)
    assert on(placed, loop) == "CPU:1"
    assert placed.reasons[loop].startswith("asked for by tanh")
    graph, _ = build("/cpu:0", "/cpu:1")
    message = "expected one device for both, because scan (created at LINE), a loop or a branch,"
    with pytest.raises(ArgumentError, match=here(message)):
        place(graph, LOCALS)


@pytest.mark.parametrize("name", ["/cpu:7", "/gpu:0"])
def test_a_device_that_does_not_exist(name: str):
    graph = Graph()
    with graph.as_default(), graph.device(name):
        v = variable()
    asked = str(DeviceName.parse(name))
    message = (
        f"device: variable (created at LINE) asks for {asked}, which does not exist; expected "
        f"one of {NAMES[0]}, {NAMES[1]}; allow_soft_placement=True takes another of the same "
        "process"
    )
    with pytest.raises(ArgumentError, match=here(message)):
        place(graph, LOCALS)
    assert on(place(graph, LOCALS, soft=True), v) == "CPU:0"
    assert not place(graph, LOCALS, needed=[]).devices  # it is no node of the run


def test_soft_placement_does_not_leave_the_job():
    graph = Graph()
    with graph.as_default(), graph.device("/job:chief"):
        variable()
    with pytest.raises(ArgumentError, match="asks for /job:chief, which does not exist"):
        place(graph, CLUSTER, soft=True)


def test_a_name_that_is_none():
    graph = Graph()
    with graph.as_default(), graph.device("/cpus:x:y"):
        variable()
    with pytest.raises(ArgumentError, match=here("'cpus:x:y': variable (created at LINE)")):
        place(graph, LOCALS)


# -- free nodes


def step(build: object, *shapes: tuple[int, ...]) -> Step:
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype="float32", shape=s) for s in shapes]
        fetches = build(*feeds, graph)  # pyright: ignore[reportCallIssue]
    types = [TensorType(v.dtype, v.shape) for v in feeds]
    return pipeline.optimize(
        pipeline.specialize(Request(graph, tuple(fetches), (), tuple(feeds)), types, {}, {})
    )


def devices(step: Step, **options: object) -> dict[str, str]:
    choice = choose(step, NAMES[0], **options)  # pyright: ignore[reportArgumentType]
    return {n.name: choice.devices[n][-1] for n in step.graph.nodes}


def test_a_free_node_goes_where_its_inputs_are():
    def build(x: Value, graph: Graph) -> list[Value]:
        with graph.device(NAMES[1]):
            y = ops.tanh(x @ x)
        return [ops.sum(y)]

    found = step(build, (64, 64))
    assert devices(found)["sum"] == "1"
    choice = choose(found, NAMES[0])
    why = next(choice.reasons[n] for n in found.graph.nodes if n.name == "sum")
    assert why == "its inputs of 16,384 bytes are there, which saves 30 us"


def test_a_free_node_stays_if_nothing_is_saved():
    def build(x: Value, graph: Graph) -> list[Value]:
        y = ops.exp(x)  # before the other device's node
        with graph.device(NAMES[1]):
            z = ops.tanh(y)
        return [z, ops.sum(y)]

    found = devices(step(build, (64, 64)))
    assert (found["exp"], found["sum"]) == ("0", "0")


def test_devices_with_processors_of_their_own_share_the_work():
    def build(x: Value, w: Value, graph: Graph) -> list[Value]:
        return [ops.sum(x @ x), ops.sum(w @ w)]

    found = step(build, (512, 512), (512, 512))
    assert set(devices(found).values()) == {"0"}
    shared = devices(found, names=NAMES)
    assert {shared["matmul"], shared["matmul_1"]} == {"0", "1"}
    slow = devices(found, names=NAMES, link_of=lambda a, b: Link(1e9, 1.0))
    assert set(slow.values()) <= {"0", "1"}
    alone = choose(found, NAMES[0], NAMES[:1]).makespan
    assert choose(found, NAMES[0], NAMES).makespan < 0.6 * alone


def test_ways_between_devices():
    assert link_between(*NAMES) is LOCAL
    assert link_between(str(CLUSTER[0]), str(CLUSTER[2])) is REMOTE
