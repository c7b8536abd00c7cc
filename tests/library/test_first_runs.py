"""Sessions run library kernels at first, then a program with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft import config
from weft.library import first_runs
from weft.library.first_runs import FirstRuns
from weft.library.generator import LibraryGenerator
from weft.library.payoff import Price
from weft.passes.group import Group
from weft.runtime import finish
from weft.runtime.executable import Executable

RUNS = 4


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a pack that has kernels of all elementwise groups; programs come after three runs."""
    monkeypatch.setattr(finish, "is_kept", lambda step, threads: False)
    monkeypatch.setattr(first_runs, "pack_of", lambda target: True)
    monkeypatch.setattr(Price, "runs", 2)
    monkeypatch.setattr(Price, "meanwhile", lambda price, runs: 1)
    found = LibraryGenerator.has

    def has(kernels: LibraryGenerator, group: Group) -> bool:
        kinds = {node.op for node in group.all_nodes}
        return found(kernels, group) or not kinds & {"matmul", "conv2d", "scan", "max_pool"}

    monkeypatch.setattr(LibraryGenerator, "has", has)


def _trained() -> list[Any]:
    """Losses, and variables, of a network with what kernels join: bias, statistics, updates."""
    rng = np.random.default_rng(1)
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    w = tf.Variable(rng.normal(size=(3, 3, 3, 5)).astype(np.float32))
    h = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    mean, variance = tf.nn.moments(h, [0, 1, 2])
    h = tf.nn.relu(tf.nn.batch_normalization(h, mean, variance, None, None, 1e-3))
    h = tf.reshape(tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), [-1, 80])
    v = tf.Variable(tf.random_normal([80, 7], seed=3))
    h = tf.nn.dropout(tf.tanh(tf.matmul(h, v) + tf.Variable(tf.zeros([7]))), 0.8, seed=2)
    h = tf.scan(lambda a, row: tf.sigmoid(a * 0.5 + row), h)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=h, labels=h[::-1] * h))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    images = [rng.random((6, 8, 8, 3), np.float32) for _ in range(RUNS)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([train, loss, h], {x: each})[1:] for each in images]
        return [*losses, session.run([w, v])]


def test_same_bits(early: None) -> None:
    """The losses of a network are those of a program that is compiled at once."""
    with tf.Graph().as_default():
        found = _trained()
    with tf.Graph().as_default(), config.override(compile=True):
        expected = _trained()
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.fixture
def made(early: None, monkeypatch: pytest.MonkeyPatch) -> list[FirstRuns]:
    """What runs on library kernels at first, as it is made."""
    found: list[FirstRuns] = []
    begin = FirstRuns.__init__

    def init(self: FirstRuns, *args: Any) -> None:
        begin(self, *args)
        found.append(self)

    monkeypatch.setattr(FirstRuns, "__init__", init)
    return found


def test_takes_over(made: list[FirstRuns]) -> None:
    """A step is begun at its second run, and is a program from the fourth on."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        y = tf.exp(x) * 0.7310585
        ran: list[Executable] = []
        for _ in range(RUNS + 1):
            session.run(y, {x: np.ones(3)})
            ran.append(made[0].program)
    (step,) = made
    assert [each is ran[0] for each in ran] == [True, True, True, False, False]
    assert step.run == ran[-1].run


def test_program(made: list[FirstRuns]) -> None:
    """What is asked for is the compiled program, which takes over."""
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.exp(tf.placeholder(tf.float32, [3], name="x")) * 0.25
        feeds = {"x:0": np.zeros(3)}
        session.run(y, feeds)
        library = made[0].program
        program = session.program(y, feeds)
        assert program is made[0].program is not library
        assert len(program.program.calls) == 1
        assert session.run(y, feeds).tolist() == [0.25] * 3


def test_compiled_at_once(made: list[FirstRuns]) -> None:
    """Library kernels run neither what they would round otherwise, nor loops of any length."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        loop = tf.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, [x])
        assert session.run([loop, tf.cast(tf.cast(x, tf.float16) + 1, tf.int32)], {x: 3}) == [
            192,
            4,
        ]
        assert not made
        assert session.run(x + 1.0, {x: 3}) == 4
        assert len(made) == 1
