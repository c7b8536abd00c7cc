"""Loops and branches in programs: as interpreted, on any number of threads, with Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from drawn_loops import Loops

import weft as wf
from weft import config, ops
from weft.codegen import serial_loop
from weft.errors import OutOfRangeError
from weft.ir.dtype import bool_, float32, float64, int32
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.ops.declaration import calls_python
from weft.runtime import finish
from weft.runtime.engine import Function, State
from weft.runtime.execution import program, segment
from weft.transform.interpreter import evaluate

LOOPS = ("while_loop", "scan")
NUMBER = TensorType(int32, ())
ROW = TensorType(float32, (3,))


@pytest.fixture
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def looped(
    inits: Sequence[Any], body: Callable[..., Any], length: int, kinds: Sequence[TensorType]
) -> tuple[Value, ...]:
    carried = len(kinds)
    traced = trace(body, kinds)
    return ops.scan.all(*inits, body=traced, length=length, carried=carried, mapped=0)


@pytest.mark.parametrize("seed", range(60))
def test_drawn_loops_are_as_interpreted(seed: int) -> None:
    loops = Loops(seed)
    target = ("native", "x86-64-v3")[seed % 2]
    with config.override(target=target):
        found = loops.compiled()
    for got, want in zip(found, loops.expected(), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(100, 108))
def test_any_number_of_threads_gives_the_same_bits(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "SERIAL_NS", 0.0)  # the team's tables, however little work it is
    monkeypatch.setattr(segment, "UNIT_NS", 1e-3)
    loops = Loops(seed)
    one = [np.asarray(y).tobytes() for y in loops.compiled(1)]
    for threads in (2, 4):
        assert [np.asarray(y).tobytes() for y in loops.compiled(threads)] == one


def test_values_that_change_places(graph: Graph) -> None:
    n = ops.placeholder(dtype="int32", shape=())
    for length in (0, 1, 2, 7):
        found = looped((n, n), lambda a, b: (b, a + b, a), length, [NUMBER, NUMBER])
        a, b, all_of_them = Function(graph, found, feeds=[n], threads=1)(
            [np.array(1, np.int32)], State()
        )
        wanted = [1, 1, 2, 3, 5, 8, 13, 21, 34]
        assert (a, b) == (wanted[length], wanted[length + 1])
        assert all_of_them.tolist() == wanted[:length]


def test_a_bad_index_in_a_loop_stops_it_before_variables_change(graph: Graph) -> None:
    v = ops.variable(key="v", dtype="float32", shape=(3,))
    table = ops.placeholder(dtype="float32", shape=(4,))

    def body(i, row, table):
        return i + 1, row + ops.gather(table, i)

    traced = trace(body, [NUMBER, ROW, table.type])
    forever = trace(lambda i, row, table: ops.less(i, 1 << 30), [NUMBER, ROW, table.type])
    _, row = ops.while_loop.all(
        ops.constant(0, dtype="int32"), ops.read(v), table, condition=forever, body=traced,
        carried=2,
    )  # fmt: skip
    change = ops.assign(v, row)
    function = Function(graph, [], targets=[change.node], feeds=[table])
    state = State()
    state["v"] = np.ones(3, np.float32)
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match=r"gather.* 4"):
            function([np.ones(4, np.float32)], state)
        assert state["v"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_endless_loop_is_stopped(
    graph: Graph, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "SERIAL_NS", 0.0)
    v = ops.variable(key="v", dtype="float32", shape=(3,))
    stop = ops.placeholder(dtype="bool", shape=())
    going = trace(lambda x, stop: ops.logical_not(stop), [ROW, stop.type])
    x = ops.while_loop(
        ops.read(v), stop, condition=going, body=trace(lambda x, s: x * 0.5, [ROW, stop.type]),
        carried=1,
    )  # fmt: skip
    function = Function(graph, [x], targets=[ops.assign(v, x + 1).node], feeds=[stop],
                        threads=threads)  # fmt: skip
    state = State()
    state["v"] = np.ones(3, np.float32)
    no, yes = np.array(False), np.array(True)
    assert function([yes], state)[0].tolist() == [1, 1, 1]
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            function([no], state)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert state["v"].tolist() == [2, 2, 2]
    assert function([yes], state)[0].tolist() == [2, 2, 2]
    assert state["v"].tolist() == [3, 3, 3]


def test_programs_with_loops_are_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = next(x for x in map(Loops, count()) if any(map(calls_python, x.graph.nodes)))
    wanted = [np.asarray(y).tobytes() for y in drawn.compiled()]
    monkeypatch.setattr(finish.Begun, "_planned", None)  # planning it anew would fail
    assert [np.asarray(y).tobytes() for y in Loops(drawn.seed).compiled()] == wanted


@pytest.mark.parametrize("pause", [100, 4_000_000])
@pytest.mark.parametrize("seed", range(8))
def test_short_loops_are_one_kernel(
    graph: Graph, seed: int, pause: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serial_loop, "PAUSE", pause)
    random = np.random.default_rng(seed)
    kinds = [NUMBER, TensorType(float32, ()), TensorType(bool_, ()), TensorType(float64, ())]
    i, x, flag, wide = (ops.placeholder(dtype=k.dtype, shape=()) for k in kinds)
    limit = int(random.integers(-1, 12))

    def turn(i: Value, x: Value, flag: Value, wide: Value) -> tuple[Value, ...]:
        new = ops.select(flag, ops.tanh(x) + 1, x * 0.75 - 1)
        return i + 1, new, ops.less(new, 0.5), wide * 0.5 + ops.cast(x, dtype=float64)

    def row(i: Value, x: Value, flag: Value, wide: Value, r: Value) -> tuple[Value, ...]:
        return (*turn(i, x * r, ops.logical_not(flag), wide), wide + 1, flag)

    rows = ops.placeholder(dtype="float32", shape=(9,))
    going = trace(lambda i, x, flag, wide: ops.less(i, limit), kinds)
    state = ops.while_loop.all(
        i, x, flag, wide, condition=going, body=trace(turn, kinds), carried=4,
        maximum=None if seed % 2 else 5,
    )  # fmt: skip
    body = trace(row, [*kinds, TensorType(float32, ())])
    found = ops.scan.all(
        *state, rows, body=body, length=9, carried=4, mapped=1, reverse=seed % 3 == 0
    )
    feeds = [i, x, flag, wide, rows]
    arrays = [
        np.array(0, np.int32), np.array(0.3, np.float32), np.array(True), np.array(0.1),
        random.standard_normal(9).astype(np.float32),
    ]  # fmt: skip
    outputs = [*state, *found]
    function = Function(graph, outputs, feeds=feeds)
    names = [c.name for c in function.program(arrays, State()).program.calls]
    assert [sum(name.startswith(f"{op}_of_") for name in names) for op in LOOPS] == [1, 1]
    for _ in range(2):
        wanted = evaluate(graph, outputs, dict(zip(feeds, arrays, strict=True)))
        for got, want in zip(function(arrays, State()), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_work_leaves_loops(graph: Graph) -> None:
    """Matmuls with weights over all steps, packed weights, and unused results."""
    h, w, x = (ops.placeholder(dtype="float32", shape=s) for s in ((8, 64), (64, 64), (6, 8, 64)))

    def cell(h: Value, unused: Value, x: Value, w: Value) -> tuple[Value, ...]:
        new = ops.tanh(x @ ops.exp(w) + h @ w)
        return new, unused * 2, ops.exp(new), new @ ops.transpose(w)

    body = trace(cell, [h.type, h.type, h.type, w.type])
    last, _, _, ys = ops.scan.all(h, h, x, w, body=body, length=6, carried=2, mapped=1)
    outputs = [last, ys]
    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal(s).astype(np.float32) * 0.1 for s in ((8, 64), (64, 64), (6, 8, 64))
    ]
    function = Function(graph, outputs, feeds=[h, w, x])
    calls = [c.name for c in function.program(arrays, State()).program.calls]
    inside = calls[calls.index("begin") : calls.index("end")]
    products = [name for name in inside if name.startswith(("matmul", "pack", "exp"))]
    assert [name.split("_")[2] for name in products] == ["8x64x64"]
    outside = {name.split("_")[2] for name in calls if name.startswith("matmul")}
    assert {"48x64x64", "48x64x64t"} <= outside
    wanted = evaluate(graph, outputs, dict(zip([h, w, x], arrays, strict=True)))
    for got, want in zip(function(arrays, State()), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_loops_over_the_same_arrays_are_one(graph: Graph) -> None:
    h, x = (ops.placeholder(dtype="float32", shape=s) for s in ((3,), (6, 3)))
    one = trace(lambda h, x: (ops.tanh(h + x), h), [h.type, h.type])
    other = trace(lambda h, x: (ops.tanh(h + x), ops.exp(h + x)), [h.type, h.type])
    third = trace(lambda h, x: (ops.tanh(h - x), ops.exp(h + x)), [h.type, h.type])
    found = [
        ops.scan.all(h, x, body=body, length=6, carried=1, mapped=1) for body in (one, other, third)
    ]
    outputs = [y for ys in found for y in ys]
    arrays = [np.linspace(-1, 1, n).astype(np.float32) for n in (3, 18)]
    arrays[1] = arrays[1].reshape(6, 3)
    function = Function(graph, outputs, feeds=[h, x])
    calls = [c.name for c in function.program(arrays, State()).program.calls]
    assert calls.count("begin") == 2
    wanted = evaluate(graph, outputs, dict(zip([h, x], arrays, strict=True)))
    for got, want in zip(function(arrays, State()), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(), (100,)])
def test_an_endless_loop_of_tensors_is_stopped(shape: tuple[int, ...]) -> None:
    def run(limit: float) -> float:
        turn = lambda s: (s[0] * 0.5 + 0.5, s[1])  # noqa: E731
        state = wf.zeros(shape), wf.tensor(limit)
        return wf.while_loop(lambda s: s[0].mean() < s[1], turn, state)[0].mean().item()

    wanted = [run(0.9) for _ in range(3)]  # compiled by now
    for raises in (True, False):
        seen: list[int] = []

        def handler(number: int, _: object, raises: bool = raises, seen: list[int] = seen) -> None:
            seen.append(number)
            if raises or len(seen) > 1:
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.3)
            with pytest.raises(KeyboardInterrupt):
                run(2.0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert len(seen) == 2 - raises
        assert run(0.9) == wanted[-1]
