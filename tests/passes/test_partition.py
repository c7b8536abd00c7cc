"""Partition: levels, stages, what they exchange; random placements against one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from drawn_partition import Drawn

from weft import config, ops
from weft.errors import GraphError
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.printer import format_graph
from weft.ops.declaration import op_of
from weft.passes import pipeline
from weft.passes.partition import Partition, partition
from weft.passes.staging.lend import lend
from weft.passes.staging.level import Levels
from weft.passes.staging.text import format_partition
from weft.passes.step import Request, Step
from weft.runtime import local_devices

CPU0, CPU1 = (f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2))


def cut(
    build: Callable[[Graph], tuple[list[Value], list[Node]]],
    kinds: tuple[Any, ...] = (),
    **options: Any,
) -> Partition:
    """The partition of a step: what asks for no device is on the first one."""
    graph = Graph()
    with graph.as_default():
        fetches, targets = build(graph)
    feeds = [n.outputs[0] for n in graph.nodes if n.op == "placeholder"]
    types = [TensorType(v.dtype, v.shape) for v in feeds]
    request = Request(graph, tuple(fetches), tuple(targets), tuple(feeds))
    step = pipeline.optimize(pipeline.specialize(request, types, {}, {}))
    homes = {n.attrs["key"]: n.device or CPU0 for n in graph.nodes if "key" in n.attrs}
    devices = {n: n.device or CPU0 for n in step.graph.nodes}
    return partition(step, devices, homes, **options)


def matrix(size: int = 4) -> Value:
    return ops.placeholder(dtype="float32", shape=(size, size))


def test_a_value_is_sent_once_to_a_device_whoever_reads_it():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        y = ops.exp(matrix())
        with graph.device(CPU1):
            readers = [ops.tanh(y), ops.sum(y), ops.tanh(y @ y)]
        return readers, []

    found = cut(build)
    assert [s.device for s in found.stages] == [CPU0, CPU1]
    assert found.stages[0].outputs == found.stages[1].inputs
    assert len(found.stages[0].outputs) == 1


def test_text():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        x, v = matrix(2), ops.variable(key="v", dtype="float32", shape=(2, 2))
        y = ops.tanh(x @ ops.read(v))
        with graph.device(CPU1):
            z = ops.sum(ops.exp(y))
        return [y, z], [ops.assign(v, ops.read(v) - z * y).node]

    assert format_partition(cut(build)) == TEXT


TEXT = """\
stage 0 on /device:CPU:0
  receive v0: float32[2,2], 16 B from the caller
  %variable/variable: float32[2,2] = variable() {key: "v", dtype: float32, shape: (2, 2)}
  %matmul: float32[2,2] = matmul(%feed0/placeholder:0, %variable/variable:0) {transpose_x: False, transpose_y: False}
  %tanh: float32[2,2] = tanh(%matmul:0)
  send v1: float32[2,2], 16 B to stage 2, 1 on /device:CPU:1 and the caller = %tanh:0
stage 1 on /device:CPU:1
  receive v1: float32[2,2], 16 B from stage 0 on /device:CPU:0
  %exp: float32[2,2] = exp(%receive/tanh/0:0)
  %sum: float32[] = sum(%exp:0) {keepdims: False, axes: (0, 1)}
  send v2: float32[], 4 B to stage 2 on /device:CPU:0 and the caller = %sum:0
stage 2 on /device:CPU:0 after 0
  receive v2: float32[], 4 B from stage 1 on /device:CPU:1
  keep v1: float32[2,2], 16 B from stage 0
  %multiply: float32[2,2] = multiply(%receive/sum/0:0, %receive/tanh/0:0)
  %variable/variable: float32[2,2] = variable() {key: "v", dtype: float32, shape: (2, 2)}
  %subtract: float32[2,2] = subtract(%variable/variable:0, %multiply:0)
  store 'v' = %subtract:0"""  # noqa: E501


def test_constants_are_where_they_are_read():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        c = ops.broadcast_to(ops.constant(np.float32(2)), shape=(4, 4))
        y = matrix() @ c
        with graph.device(CPU1):
            z = ops.tanh(y) @ c
        return [z], []

    first, second = cut(build).stages
    assert len(second.inputs) == 1
    assert "constant" in format_graph(first.step.graph)
    assert "constant" in format_graph(second.step.graph)


def test_a_store_comes_after_all_reads_of_the_old_value():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        v = ops.variable(key="v", dtype="float32", shape=(4, 4))
        new = ops.assign(v, ops.exp(matrix())).node
        with graph.device(CPU1):
            far = ops.tanh(matrix())
        return [ops.read(v) @ far], [new]

    found = cut(build)
    reads = [i for i, s in enumerate(found.stages) if "variable/" in format_graph(s.step.graph)]
    stores = [i for i, s in enumerate(found.stages) if s.step.updates]
    assert min(stores) >= max(reads)


def test_stores_come_after_checks_of_other_devices():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        count = ops.variable(key="count", dtype="int64", shape=())
        step = ops.assign(count, ops.read(count) + 1).node
        with graph.device(CPU1):
            i = ops.placeholder(dtype="int32", shape=(2,))
            rows = ops.gather(matrix(), i)
        return [rows], [step]

    found = cut(build)
    assert [(s.device, s.step.updates) for s in found.stages] == [(CPU1, ()), (CPU0, ("count",))]
    token = set(found.stages[0].outputs) & set(found.stages[1].inputs)
    assert [str(found.types[v]) for v in token] == ["bool[]"]


def test_effects_of_several_devices_keep_their_order():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        called = {"function": np.negative, "dtypes": ("float32",), "shapes": ((4, 4),)}
        x = matrix()
        with graph.device(CPU1):
            first = ops.host_call(x, **called)
        second = ops.host_call(x, **called)
        return [second, first], []

    assert [s.device for s in cut(build).stages] == [CPU1, CPU0]


def test_what_another_device_waits_for_is_sent_early():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        x = matrix(300)
        y = x @ x
        with graph.device(CPU1):
            z = ops.sum(y)
        rest = x
        for _ in range(3):
            rest = ops.tanh(rest @ x)
        return [rest, z], []

    early, late, far = cut(build).stages
    assert (early.device, late.device, far.device) == (CPU0, CPU0, CPU1)
    assert early.outputs == far.inputs and not set(late.outputs) & set(far.inputs)
    assert [s.device for s in cut(build, early=False).stages] == [CPU0, CPU1]


def test_what_comes_from_another_process_is_received_when_it_is_needed():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        with graph.device("/job:ps/task:0/device:CPU:0"):
            keys = [f"w{i}" for i in range(3)]
            ws = [ops.variable(key=k, dtype="float32", shape=(1000, 1000)) for k in keys]
        with graph.device("/job:worker/task:0/device:CPU:0"):
            y = matrix(1000)
            for w in ws:
                y = ops.tanh(y @ ops.read(w))
        return [y], []

    stages = cut(build).stages
    assert [s.device.split("/")[1] for s in stages] == ["job:ps", *["job:worker"] * 2]
    first, *rest = stages[0].outputs  # which have come when the first layer is done
    given = [[v for v in s.inputs if v in stages[0].outputs] for s in stages[1:]]
    assert given == [[first], rest] and len(rest) == 2
    assert len(cut(build, early=False).stages) == 2


def test_cheap_values_are_computed_again_and_not_kept():
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        y = matrix(512) @ matrix(512)
        near = ops.sum(ops.relu(y) * 2.0)
        with graph.device(CPU1):
            far = ops.sum(ops.exp(y))
        return [near, ops.sum(ops.relu(y) * 2.0 * far)], []

    first, _, last = cut(build, early=False).stages
    assert [v.node.op for v in first.step.fetches] == ["matmul", "sum"]
    assert "relu" in format_graph(last.step.graph)


def test_a_variable_that_is_only_assigned_needs_a_home():
    graph = Graph()
    with graph.as_default():
        v = ops.variable(key="v", dtype="float32", shape=())
        done = ops.assign(v, ops.constant(np.float32(1))).node
    step = pipeline.specialize(Request(graph, (), (done,)), [], {}, {})
    with pytest.raises(GraphError, match="expected the device of the variable 'v', got none"):
        partition(step, {n: CPU0 for n in step.graph.nodes})


@pytest.mark.parametrize("in_turn", [False, True])
def test_variables_are_read_in_place_by_other_devices(in_turn: bool):
    def build(graph: Graph) -> tuple[list[Value], list[Node]]:
        v, w = (ops.variable(key=k, dtype="float32", shape=(4, 4)) for k in "vw")
        with graph.device(CPU1):
            g = ops.tanh(ops.read(v) @ ops.read(w))
        count = ops.assign(w, matrix() * 2.0).node  # depends on nothing that reads it
        return [g], [ops.assign(v, ops.read(v) - g).node, count]

    whole = cut(build)
    found, lent = lend(whole, in_turn)
    assert [x.key for x in lent.values()] == ["v"]  # `w` may change while it is read
    assert [len(s.outputs) for s in (whole.stages[0], found.stages[0])] == [2, 1]
    assert all(x.device == CPU0 for x in lent.values())
    assert not any(set(s.outputs) & lent.keys() for s in found.stages)
    assert set(lent) < {v for s in found.stages for v in s.inputs}


# -- random steps


@contextmanager
def unfused(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """One kernel a node, so that no sum is formed in another order for what it is fused with."""
    with patch.context() as local, config.override(verify=True):  # not from the cache on disk
        local.setattr(pipeline, "grouped", partial(_plain, pipeline.grouped))
        yield


def _plain(grouped: Any, step: Step, has: Any = None) -> Any:
    del has
    return grouped(step, lambda group: False)


def agree(seed: int) -> None:
    """Refuses a step whose bits, variables or effects depend on how many devices there are."""
    drawn, count = Drawn(seed), 2 + seed % 2
    assert drawn.one(asked=count) == drawn.several(count)


def agree_unfused(seed: int, patch: pytest.MonkeyPatch) -> None:
    """The same against a step that asks for no device.

    Its kernels may join what is on several devices, which only the order of sums may show.
    """
    drawn, count = Drawn(seed), 2 + seed % 2
    if drawn.one() != drawn.several(count):
        with unfused(patch):
            assert drawn.one() == drawn.several(count)


@pytest.mark.parametrize("seed", range(32))
def test_drawn_steps_give_what_one_device_gives(seed: int, monkeypatch: pytest.MonkeyPatch):
    if seed % 2:  # each device in a thread of its own, though it does not pay
        monkeypatch.setattr(local_devices, "WORTH_NS", -1.0)
    agree(seed)


def test_calls_of_python_keep_their_order_across_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_devices, "WORTH_NS", -1.0)
    drawn = Drawn(415, python=True)
    assert drawn.one(asked=3) == drawn.several(3)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 50))
def test_many_drawn_steps(first: int, monkeypatch: pytest.MonkeyPatch):
    for seed in range(first, first + 50):
        monkeypatch.setattr(local_devices, "WORTH_NS", -1.0 if seed % 2 else 1e5)
        agree(seed)
        agree_unfused(seed, monkeypatch)


def test_a_wrong_order_of_stages_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """Without the rule that stores come after reads, steps must not pass."""
    monkeypatch.setattr(Levels, "_raised", lambda *_: False)
    wrong = 0
    for seed in range(24):
        drawn = Drawn(seed)
        wrong += drawn.one(asked=2) != drawn.several()
    assert wrong


def test_every_drawn_step_is_cut():
    stages: list[int] = []
    for seed in range(0, 16, 3):
        Drawn(seed).several(made=lambda p: stages.append(len(p.partition.stages)), runs=1)
    assert min(stages) > 1
    ops_seen = {op_of(n).name for s in range(8) for n in Drawn(s).graph.nodes}
    assert {"assign", "counter", "host_call", "variable"} <= ops_seen
