"""Runs with host nodes: waiting, cancellation, Ctrl-C, errors."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from patience import LIMIT

import weft.tf1 as tf
from weft import ops
from weft.errors import ArgumentError, CancelledError, GraphError
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ops.resource.call import resource_call
from weft.ops.resource.spec import ResourceSpec
from weft.passes.step import Request
from weft.resource.base import Cancellation
from weft.runtime.engine import Function, State
from weft.runtime.phased import Phased


class Boxes:
    """Queues by name, as the calls of a graph see them."""

    def __init__(self) -> None:
        self.made: dict[str, queue.SimpleQueue[Any]] = {}

    def of(self, name: str) -> queue.SimpleQueue[Any]:
        return self.made.setdefault(name, queue.SimpleQueue())

    def call(self, node: Node, xs: Sequence[Any], cancel: Cancellation) -> list[Any]:
        box = self.of(node.attrs["resource"].name)
        match node.attrs["method"]:
            case "put":
                box.put(xs[0])
                return []
            case "take":
                return [self._taken(box, cancel)]
            case method:
                raise ArgumentError(f"expected put or take, got {method!r}")

    def _taken(self, box: queue.SimpleQueue[Any], cancel: Cancellation) -> Any:
        withdraw = cancel.add(box.put)
        try:
            found = box.get(timeout=LIMIT)
        finally:
            withdraw()
        if isinstance(found, BaseException):
            raise found
        return found


def take(name: str, method: str = "take", shape: Any = ()) -> Value:
    spec = ResourceSpec("Box", name)
    return resource_call(resource=spec, method=method, dtypes=(float32,), shapes=(shape,))


def put(name: str, x: Value) -> Node:
    return resource_call.node((x,), {"resource": ResourceSpec("Box", name), "method": "put"})


def compiled(request: Request) -> Function:
    return Function(
        request.graph, request.fetches, request.targets, request.feeds, 1, done=request.done
    )


class Case:
    """A graph under construction, and its runs."""

    def __init__(self) -> None:
        self.boxes, self.graph, self.cancellation = Boxes(), Graph(), Cancellation()

    def run(self, *fetches: Value, targets: Sequence[Node] = ()) -> list[Any]:
        request = Request(self.graph, fetches, tuple(targets))
        return Phased(request, compiled, self.boxes.call, self.cancellation)([], State())


@pytest.fixture
def case() -> Iterator[Case]:
    before = threading.active_count()
    made = Case()
    with made.graph.as_default():
        yield made
    assert threading.active_count() == before


def test_a_run_takes_from_two_queues_at_once(case: Case) -> None:
    """Whoever fills them waits for the second to be taken before it fills the first."""
    y = take("a") + take("b")
    started = threading.Barrier(3, timeout=LIMIT)
    call = case.boxes.call

    def meet(node: Node, xs: Sequence[Any], cancel: Cancellation) -> list[Any]:
        started.wait()  # all three calls are in progress
        return call(node, xs, cancel)

    case.boxes.call = meet
    one = put("a", ops.constant(np.float32(1)))
    case.boxes.of("b").put(np.float32(2))
    assert case.run(y, targets=[one]) == [3.0]


def test_no_lock_is_held_while_a_run_waits(case: Case) -> None:
    y = take("a") * 2.0
    filled = put("a", ops.constant(np.float32(3)) * 5.0)
    timer = threading.Timer(0.05, lambda: case.run(targets=[filled]))
    timer.start()
    assert case.run(y) == [30.0]
    timer.join(LIMIT)


def test_shapes_are_known_after_the_call(case: Case) -> None:
    y = ops.sum(take("a", shape=(None, 2)) + 1.0, axes=(0,))
    for rows in (1, 3):
        case.boxes.of("a").put(np.ones((rows, 2), np.float32))
        assert case.run(y)[0].tolist() == [2.0 * rows] * 2


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_cancellation_ends_what_waits(case: Case, names: list[str]) -> None:
    values = [take(name) for name in names]
    threading.Timer(0.05, case.cancellation.cancel).start()
    with pytest.raises(CancelledError, match=r"take: the session was closed"):
        case.run(*values)
    with pytest.raises(CancelledError):
        case.run(*values)


def test_an_error_ends_the_waits_of_the_other_parts(case: Case) -> None:
    values = [take("a"), take("b", "tear"), take("c")]
    with pytest.raises(ArgumentError, match=r"expected put or take, got 'tear' \(node .*\.py:\d+"):
        case.run(*values)


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_ctrl_c_takes_effect_while_a_run_waits(case: Case, names: list[str]) -> None:
    values = [take(name) for name in names]
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    call = case.boxes.call

    def begun(node: Node, xs: Sequence[Any], cancel: Cancellation) -> list[Any]:
        if node.attrs["resource"].name == "a":
            timer.start()
        return call(node, xs, cancel)

    case.boxes.call = begun
    with pytest.raises(KeyboardInterrupt):
        case.run(*values)
    timer.join(LIMIT)


def test_results_that_were_not_promised(case: Case) -> None:
    case.boxes.of("a").put(np.arange(3))
    with pytest.raises(GraphError, match=r"results float32\[\], got int64\[3\] .*test_phased.py:"):
        case.run(take("a"))


def test_a_closed_session_ends_its_runs() -> None:
    with tf.Graph().as_default() as graph:
        queue_ = ResourceSpec(
            "FIFOQueueV2",
            "q",
            options=(("capacity", 1), ("dtypes", ("float32",)), ("shapes", ((),))),
        )
        taken = graph.emit(
            "QueueDequeueV2", (), resource_call, name="taken", resource=queue_, method="dequeue",
            dtypes=(float32,), shapes=((),),
        ).outputs[0]  # fmt: skip
        session = tf.Session()
        threading.Timer(0.05, session.close).start()
        with pytest.raises(tf.errors.CancelledError, match=r"taken, created at .*test_phased.py:"):
            session.run(taken * 2.0)


def test_functions_that_fail_name_their_line() -> None:
    def wrong() -> Any:
        raise ValueError("seven")

    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.reduce_sum(tf.py_func(wrong, [], tf.float32))
        with pytest.raises(tf.errors.UnknownError, match=r"ValueError: seven .*test_phased.py:\d+"):
            session.run(y)
        long = tf.py_func(lambda: np.arange(3.0, dtype=np.float32), [], tf.float32)
        with pytest.raises(tf.errors.UnknownError, match=r"PyFunc: .*float64, got 'a'"):
            session.run(tf.py_func(lambda: "a", [], tf.float64))
        assert session.run(tf.reduce_sum(long)) == 3.0


def test_no_run_is_interpreted_for_a_function_of_unknown_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Function, "_run_interpreted", None)
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable([[2.0], [3.0]])
        x = tf.py_func(lambda n: np.ones((n, 2), np.float32), [tf.constant(4)], tf.float32)
        x = tf.reshape(x, [-1, 2])
        loss = tf.reduce_sum(tf.matmul(x, w))
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        session.run(tf.global_variables_initializer())
        assert session.run([loss, train])[0] == 20.0
        assert session.run(w).tolist() == [[0.0], [1.0]]


def test_a_traced_run_tells_when_host_nodes_ran() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        slow = tf.py_func(lambda: time.sleep(0.01) or np.float32(2), [], tf.float32, name="slow")
        y = tf.matmul(tf.fill([64, 64], tf.reshape(slow, [])), tf.ones([64, 64]), name="y")
        metadata = tf.RunMetadata()
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert session.run(y, None, full, metadata)[0, 0] == 128.0
    times = {t.name: t for t in metadata.times}
    assert times["slow"].start == 0 and times["slow"].duration >= 10_000
    assert 10_000 <= times["y"].start < 10_000_000
    (interval,) = [i for i in metadata.timeline.intervals if i.what.startswith("slow")]
    assert interval.kind == "compute" and interval.device.startswith("/job:client")
