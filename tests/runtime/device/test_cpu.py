"""CPUs as devices: results in given memory, several at the same time, limits of memory."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import numpy as np
import pytest

from weft import ops
from weft.errors import ArgumentError, OutOfMemoryError, UninitializedError
from weft.ir.device import DeviceName
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.ops.call import trace
from weft.passes import pipeline
from weft.passes.step import Request
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.device.local import cpu_devices, processor
from weft.runtime.execution import team
from weft.runtime.execution.processor import FIRST

FLOATS = TensorType(as_dtype("float32"), (600, 600))
WAIT = 60.0


def name(index):
    return DeviceName("localhost", 0, 0, "CPU", index)


@pytest.fixture
def devices():
    made = [CpuDevice(name(i), threads=2) for i in range(2)]
    yield made
    for device in made:
        device.close()
        assert device.processor.team.size == 1


def optimized(graph, outputs, feeds=(), targets=()):
    request = Request(graph, tuple(outputs), tuple(targets), tuple(feeds))
    types = [v.type for v in feeds]
    return pipeline.optimize(pipeline.specialize(request, types, {}, {}, {}))


def step_of_everything(size=600):
    """A step whose results are a feed, a variable's values, one value twice, and a constant."""
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(size, size))
        v = ops.variable(key="v", dtype="float32", shape=(size, size))
        before = ops.read(v)
        y = ops.tanh(ops.matmul(x, before) * 0.01)
        z = ops.constant(np.arange(3.0, dtype="f4"))
        total = ops.sum(y)
        after = ops.assign(v, before + y)
    return optimized(graph, (y, x, before, y, after, z, total), (x,))


def inputs(size=600):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(size, size)).astype("f4") for _ in range(2)]


def launched(device, program, x, v, times=1):
    variables = device.variables()
    variables["v"] = v
    outputs = [device.allocate(kind) for kind in program.outputs]
    for _ in range(times):
        found = device.launch(program, [x], outputs, variables)
    assert all(a is b for a, b in zip(found, outputs, strict=True))
    return [*found, variables["v"]]


def test_results_are_written_to_given_memory(devices):
    x, v = inputs()
    device = devices[0]
    y, fed, before, again, after, z, total, new = launched(
        device, device.compile(step_of_everything()), x, v
    )
    np.testing.assert_allclose(y, np.tanh(x @ v * np.float32(0.01)), rtol=1e-4, atol=1e-5)
    assert np.array_equal(fed, x) and fed is not x
    assert np.array_equal(before, v)
    assert np.array_equal(again, y)
    assert np.array_equal(after, v + y) and np.array_equal(new, after)
    assert z.tolist() == [0, 1, 2]
    assert total.shape == () and abs(total - y.sum(dtype="f8")) < 1e-2 * np.abs(y).sum()


def test_memory_that_is_not_given_is_allocated(devices):
    device, (x, v) = devices[0], inputs(8)
    program = device.compile(step_of_everything(8))
    variables = device.variables()
    variables["v"] = v
    found = device.launch(program, [x], [None] * len(program.outputs), variables)
    kinds = [TensorType(as_dtype(a.dtype), a.shape) for a in found]
    assert tuple(kinds) == program.outputs
    first = found[0].copy()
    device.launch(program, [x + 1], [None] * len(program.outputs), variables)
    assert np.array_equal(found[0], first)
    with pytest.raises(UninitializedError, match="variable 'v'"):
        device.launch(program, [x], [None] * len(program.outputs), device.variables())


def test_a_result_of_as_many_rows_as_a_loop_has_steps(devices):
    kinds = [TensorType(as_dtype("int32"), ()), TensorType(as_dtype("int32"), (3,))]
    graph = Graph()
    with graph.as_default():
        n, x = (ops.placeholder(dtype="int32", shape=kind.shape) for kind in kinds)
        body = trace(lambda i, x: (i - 1, x * i), kinds)
        more = trace(lambda i, x: ops.greater(i, 0), kinds)
        last, rows = ops.while_loop.all(n, x, condition=more, body=body, carried=1)
    program = devices[0].compile(optimized(graph, [rows, last], [n, x]))
    ones, variables = np.array([1, 2, 3], np.int32), devices[0].variables()
    memory = devices[0].allocate(kinds[0])
    for count in (2, 5):
        feeds = [np.array(count, np.int32), ones]
        found = devices[0].launch(program, feeds, [None, memory], variables)
        assert found[0].tolist() == [[i, 2 * i, 3 * i] for i in range(count, 0, -1)]
        assert found[1] is memory and memory == 0


def test_two_devices_at_the_same_time_give_the_same_bits(devices):
    x, v = inputs()
    step = step_of_everything()
    found, barrier = [None, None], threading.Barrier(2)

    def run(i):
        program = devices[i].compile(step)
        barrier.wait(WAIT)
        found[i] = launched(devices[i], program, x, v, times=20)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    alone = launched(devices[0], devices[0].compile(step), x, v, times=20)
    for results in found:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(results, alone, strict=True))


def test_a_program_waits_for_others_of_its_device_only(devices):
    x, v = inputs()
    programs = [device.compile(step_of_everything()) for device in devices]
    done = [threading.Event(), threading.Event()]

    def run(i):
        launched(devices[i], programs[i], x, v)
        done[i].set()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    with devices[0].processor.pool.lock:
        for thread in threads:
            thread.start()
        assert done[1].wait(WAIT)
        assert not done[0].is_set()
    assert done[0].wait(WAIT)
    for thread in threads:
        thread.join(WAIT)


def test_programs_that_wait_for_each_other(devices):
    barrier = threading.Barrier(2)

    def meet(x):
        barrier.wait(WAIT)
        return x + 1

    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(3,))
        call = ops.host_call(x, function=meet, dtypes=("float32",), shapes=((3,),))
    step = optimized(graph, [call[0] if isinstance(call, tuple) else call], [x])
    found = [None, None]

    def run(i):
        program = devices[i].compile(step)
        found[i] = devices[i].launch(program, [np.ones(3, "f4")], [None], devices[i].variables())

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert [f[0].tolist() for f in found] == [[2.0] * 3] * 2


def test_a_limit_of_memory():
    limited = CpuDevice(name(1), threads=1, memory_limit=10 << 20)
    assert limited.memory_limit == limited.attributes.memory_limit_bytes == 10 << 20
    held = limited.allocate(TensorType(as_dtype("float32"), (1 << 20,)))
    assert limited.memory_taken == 4 << 20
    with pytest.raises(OutOfMemoryError, match="CPU:1 cannot take 8,388,608 bytes: 4,194,304 of"):
        limited.allocate(TensorType(as_dtype("float64"), (1 << 20,)))
    variables = limited.variables()
    with pytest.raises(OutOfMemoryError, match="tensor: /job:localhost"):
        variables["v"] = np.zeros(2 << 20, "f4")
    variables["v"] = np.zeros(1 << 20, "f4")
    view = held[:1]
    del held, variables
    gc.collect()
    assert limited.memory_taken == 4 << 20
    del view
    gc.collect()
    assert limited.memory_taken == 0


def test_programs_count_too():
    limited = CpuDevice(name(1), threads=1, memory_limit=20 << 20)
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(1024, 1024))
        y = ops.sum(ops.matmul(ops.matmul(x, x), x))
    step = optimized(graph, [y], [x])
    program = limited.compile(step)
    assert 4 << 20 <= limited.memory_taken <= 20 << 20
    with pytest.raises(OutOfMemoryError, match="arena: /job:localhost/replica:0/task:0/device:CPU"):
        CpuDevice(name(1), threads=1, memory_limit=1 << 20).compile(step)
    del program
    gc.collect()
    assert limited.memory_taken == 0


def test_moving_values(devices):
    first, second = devices
    array = np.arange(6, dtype="f4").reshape(2, 3)
    assert first.shares_memory(second) and first.send(array, second) is array
    copied = first.copy(array, second)
    assert copied is not array and np.array_equal(copied, array)
    assert first.to_host(first.from_host(array)) is array
    assert first.event().wait(0.0)


def test_names_and_attributes(devices):
    first, second = devices
    assert (first.kind, first.index, second.index) == ("CPU", 0, 1)
    assert first.incarnation != second.incarnation
    text = f"_DeviceAttributes({name(1)}, CPU, {second.memory_limit}, {second.incarnation})"
    assert repr(second.attributes) == text
    with pytest.raises(ArgumentError, match="expected a full name"):
        CpuDevice(DeviceName("ps", kind="CPU", index=0))


def test_local_devices_are_made_once():
    task = DeviceName("worker", 0, 3)
    first, second = cpu_devices(2), cpu_devices(2, 1, task)
    assert [str(d.name) for d in second] == [f"{task}/device:CPU:{i}" for i in range(2)]
    assert [d.incarnation for d in first] == [d.incarnation for d in second]
    assert first[0].processor is FIRST and first[1].processor is second[1].processor
    assert processor(1) is first[1].processor and processor(1) is not FIRST


def test_a_forked_child_has_threads_of_its_own(devices):
    x, v = inputs()
    device = devices[1]
    program = device.compile(step_of_everything())
    expected = launched(device, program, x, v)
    assert device.processor.team.size == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks of threads that Python knows
        child = os.fork()
    if not child:
        status = 1
        try:
            alone = device.processor.team.size == 1
            found = launched(device, program, x, v)
            same = all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))
            status = 0 if alone and same and device.processor.team.size == 2 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_idle_threads_do_not_take_the_cores_of_another_team(devices, monkeypatch):
    monkeypatch.setattr(team, "_processors", lambda: {0, 1, 2})
    x, v = inputs()
    first, second = devices
    programs = [device.compile(step_of_everything()) for device in devices]

    def turns():
        return [device.processor.team._state.turns for device in devices]

    for _ in range(3):
        for device, program in zip(devices, programs, strict=True):
            launched(device, program, x, v)
    assert turns() == [team.CROWDED_TURNS] * 2
    launched(first, programs[0], x, v, times=team.PROGRAMS_IN_TURN + 1)
    assert turns() == [team.SPIN_TURNS, team.CROWDED_TURNS]
    launched(second, programs[1], x, v)
    assert turns() == [team.CROWDED_TURNS] * 2
