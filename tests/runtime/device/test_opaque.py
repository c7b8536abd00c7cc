"""Steps over devices whose memory is not NumPy's give what those of one processor give."""

from __future__ import annotations

import numpy as np
from opaque import OpaqueDevice

from weft import ops
from weft.ir.device import DeviceName
from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.device.states import DeviceStates
from weft.runtime.engine import Function, State
from weft.runtime.finish import partitioned
from weft.runtime.local_devices import LocalProgram

NAMES = [DeviceName("localhost", 0, 0, kind, i) for kind, i in (("CPU", 0), ("X", 0), ("X", 1))]


def test_values_and_variables_of_opaque_devices():
    first, *others = map(str, NAMES)
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(5, 5))
        with graph.device(others[0]):
            v = ops.variable(key="v", dtype="float32", shape=(5, 5))
            a = ops.tanh(ops.matmul(x, ops.read(v)))
            new = ops.assign(v, ops.read(v) + a)
        with graph.device(others[1]):
            b = ops.matmul(a, x) + x
        with graph.device(first):
            c = a * b - x
        with graph.device(others[0]):
            d = ops.sum(c * a)
    request = Request(graph, (c, d, a, new, x), (), (x,))
    step = specialize(request, [x.type], {}, {})

    def devices_of(step: Step) -> dict[Node, str]:
        return {node: node.device or first for node in step.graph.nodes}

    whole, parts = partitioned(step, devices_of, {"v": others[0]})
    cpu, *opaque = CpuDevice(NAMES[0], threads=1), *map(OpaqueDevice, NAMES[1:])
    devices = {str(d.name): d for d in (cpu, *opaque)}
    program = LocalProgram(whole, parts, devices)
    states = DeviceStates({n: d.variables() for n, d in devices.items()}, first)
    states.homes["v"] = others[0]
    plain, state = Function(graph, request.fetches, (), (x,)), State()
    rng = np.random.default_rng(0)
    states["v"] = state["v"] = rng.normal(size=(5, 5)).astype("f4")
    for _ in range(3):
        feed = rng.normal(size=(5, 5)).astype("f4")
        found, expected = program.run([feed], states), plain([feed], state)
        for y, z in zip(found, expected, strict=True):
            assert np.array_equal(y, z)
        assert np.array_equal(states["v"], state["v"])
    assert {len(device.moves) > 0 for device in opaque} == {True}
    counts = [device.moves.count("in") / 3 for device in opaque]
    assert counts == [2, 2]  # x and c; x and a: each value once, whatever reads it
