"""Loops and branches in programs: as interpreted, on any number of threads, stopped by Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from drawn_loops import Loops

from weft import config, ops
from weft.errors import OutOfRangeError
from weft.ir.dtype import float32, int32
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.runtime import finish, program, segment
from weft.runtime.engine import Function, State

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
    first = Loops(7)
    wanted = [np.asarray(y).tobytes() for y in first.compiled()]
    monkeypatch.setattr(finish, "_made", None)  # whoever plans it anew fails
    assert [np.asarray(y).tobytes() for y in Loops(7).compiled()] == wanted
