"""Gradients of `while_loop` equal interpreted ones and differences, on any threads."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from drawn_loops import Loops

import weft as wf
import weft.tf1 as tf
from weft import func
from weft.errors import OutOfMemoryError
from weft.ir.dtype import float64
from weft.runtime.execution import program, segment
from weft.runtime.memory import tape
from weft.transform.interpreter import evaluate


def drawn(seed: int, order: int = 2) -> Loops:
    loops = Loops(seed, dtype=float64)
    loops.differentiate(order)
    return loops


@pytest.mark.parametrize("seed", [300, 301, 1033, 1039])
def test_drawn_gradients(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nested three deep, to second order; compiled on 1, 2 and 4 threads, bit by bit."""
    monkeypatch.setattr(program, "SERIAL_NS", 0.0)
    monkeypatch.setattr(segment, "UNIT_NS", 1e-3)
    loops = drawn(seed)
    found = loops.compiled(1, runs=2)
    for got, want in zip(found, loops.expected(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)
    one = [np.asarray(y).tobytes() for y in found]
    for threads in (2, 4):
        assert [np.asarray(y).tobytes() for y in loops.compiled(threads)] == one


@pytest.mark.parametrize("seed", [302, 305, 308])
def test_drawn_gradients_are_slopes(seed: int) -> None:
    """Of the function and of the gradients' squares: against differences."""
    loops = drawn(seed)
    first = len(Loops(seed, dtype=float64).results)
    x = loops.feeds[0]
    way = np.random.default_rng(seed).standard_normal(x.shape)

    def at(step: float) -> list[Any]:
        arrays = [loops.arrays[0] + step * way, *loops.arrays[1:]]
        return evaluate(loops.graph, loops.results, dict(zip(loops.feeds, arrays, strict=True)))

    before, here, after = (at(step) for step in (-1e-6, 0.0, 1e-6))
    places = [i for i in range(first, len(here)) if here[i].shape == ()]
    assert len(places) == 2
    for i in places:
        slope = (after[i] - before[i]) / 2e-6
        assert abs(slope) > 1e-3
        np.testing.assert_allclose(np.vdot(here[i + 1], way), slope, rtol=1e-4)


def slope_of_loop(limit: int, x: Any) -> Any:
    """By `x`, of a loop of as many iterations."""

    def end(x: Any, limit: Any) -> Any:
        def turn(s: tuple[Any, ...]) -> tuple[Any, ...]:
            return s[0] + 1, wf.sin(s[1]) * 0.9 + x

        return wf.while_loop(lambda s: s[0] < limit, turn, (0, x))[1].sum()

    return func.grad(end)(x, wf.tensor(limit))


def by_hand(limit: int, x: float) -> float:
    y, slope = x, 1.0
    for _ in range(limit):
        y, slope = np.sin(y) * 0.9 + x, np.cos(y) * 0.9 * slope + 1
    return slope


@pytest.mark.parametrize("first", [64, tape.FIRST])
def test_memory_grows_with_the_iterations(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "FIRST", first)
    monkeypatch.setattr(tape, "KEPT", 1 << 12)
    x = wf.full((10 + first % 3,), 0.5, dtype=wf.float64)
    for limit in (1, 700, 0, 3, 12_345, 2):
        found = slope_of_loop(limit, x).numpy()
        np.testing.assert_allclose(found, by_hand(limit, 0.5), rtol=1e-12)


def test_too_many_iterations_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "capacity", lambda: 1 << 20)
    x = wf.full((101,), 0.5, dtype=wf.float64)
    wanted = slope_of_loop(1000, x).tolist()
    with pytest.raises(
        OutOfMemoryError, match=r"1,29\d iterations.* 1,04\d,\d{3} bytes \(808 each"
    ):
        slope_of_loop(1 << 30, x).numpy()
    assert slope_of_loop(1000, x).tolist() == wanted


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import numpy as np
import weft as wf
from weft import func
def power(x, n):
    return func.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (wf.tensor(0), x))[1]
slope = func.jit(func.grad(lambda x, n: power(x, n).sum()))
for size in range(20, 24):  # a program each
    for _ in range(3):
        assert slope(wf.ones(size), wf.tensor(10))[0].item() == 11
np.ones(1 << 28, np.uint8)
"""


def test_a_limit_of_addresses_leaves_some_for_all_else() -> None:
    found = subprocess.run([sys.executable, "-c", LIMITED], check=False, stderr=subprocess.PIPE)
    assert found.returncode == 0, found.stderr


def test_an_endless_gradient_is_stopped() -> None:
    x = wf.full((103,), 0.5, dtype=wf.float64)
    wanted = slope_of_loop(1000, x).tolist()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            slope_of_loop(1 << 30, x).numpy()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert slope_of_loop(1000, x).tolist() == wanted


def test_a_loop_that_calls_python_has_gradients() -> None:
    """It runs in Python; the backward loop, which does not, reads its stack."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])

        def body(i: Any, y: Any) -> Any:
            z = tf.py_func(lambda a: a * np.float32(1), [y], tf.float32)
            z.set_shape([3])
            return i + 1, tf.tanh(y * x) + tf.stop_gradient(z) * 0.1

        y = tf.while_loop(lambda i, _: i < n, body, [0, x])[1]
        (slope,) = tf.gradients(y, x)
        (second,) = tf.gradients(tf.reduce_sum(slope * slope), x)
        for count, wanted in ((0, [[1, 1, 1], [0, 0, 0]]), (4, SLOPES)):
            found = session.run([slope, second], {x: [0.5, 0.6, 0.7], n: count})
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


SLOPES = [[0.3772241, 0.6903484, 1.0420299], [1.7908673, 4.4615215, 6.1985045]]
"""Of the loop without the call, by TensorFlow's formulas unrolled."""
