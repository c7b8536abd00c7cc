"""Further optimizers: four steps and all names against TensorFlow's; slots of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors

MAKE: dict[str, Callable[[Any], Any]] = {
    "adadelta": lambda step: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda step: tf.train.FtrlOptimizer(
        0.5, l1_regularization_strength=0.3, l2_regularization_strength=0.2
    ),
    "ftrl2": lambda step: tf.train.FtrlOptimizer(
        0.5, -0.3, l1_regularization_strength=0.3, l2_shrinkage_regularization_strength=0.1
    ),
    "ftrl0": lambda step: tf.train.FtrlOptimizer(0.5, 0.0),
    "pgd": lambda step: tf.train.ProximalGradientDescentOptimizer(0.05, 0.3, 0.1),
    "pada": lambda step: tf.train.ProximalAdagradOptimizer(0.5, 0.2, 0.3, 0.1),
    "da": lambda step: tf.train.AdagradDAOptimizer(0.5, step, 0.2, 0.01, 0.1),
}
# Optimizer, whether only rows 1 and 2 have a gradient, w after four steps, names of the slots'
# variables, by TensorFlow 2.21 in its version 1 mode
ROWS: list[tuple[str, bool, list[list[float]], list[str]]] = [
    (
        "adadelta",
        False,
        [
            [0.09909, 0.19909, 0.29909],
            [0.39909, 0.49909, 0.59909],
            [0.69909, 0.79909, 0.89909],
            [0.99909, 1.09909, 1.19909],
        ],
        ["w/Adadelta:0", "w/Adadelta_1:0"],
    ),
    (
        "adadelta",
        True,
        [
            [0.1, 0.2, 0.3],
            [0.39909, 0.49909, 0.59909],
            [0.69909, 0.79909, 0.89909],
            [1.0, 1.1, 1.2],
        ],
        ["w/Adadelta:0", "w/Adadelta_1:0"],
    ),
    (
        "ftrl",
        False,
        [
            [-0.06165, -0.04537, -0.03178],
            [-0.03333, -0.03322, 0.0],
            [0.0, 0.0, 0.01156],
            [0.04673, 0.09143, 0.14435],
        ],
        ["w/Ftrl:0", "w/Ftrl_1:0"],
    ),
    (
        "ftrl",
        True,
        [
            [0.1, 0.2, 0.3],
            [-0.05, -0.04968, -0.02401],
            [0.0, 0.0, 0.0],
            [1.0, 1.1, 1.2],
        ],
        ["w/Ftrl:0", "w/Ftrl_1:0"],
    ),
    (
        "ftrl2",
        False,
        [
            [0.0, 0.0, 0.0],
            [-0.00769, -0.03652, -0.03384],
            [-0.03156, -0.0319, -0.03192],
            [-0.03194, -0.03194, -0.03167],
        ],
        ["w/Ftrl:0", "w/Ftrl_1:0"],
    ),
    (
        "ftrl2",
        True,
        [
            [0.1, 0.2, 0.3],
            [-0.05557, -0.04666, -0.04698],
            [-0.0456, -0.0455, -0.04476],
            [1.0, 1.1, 1.2],
        ],
        ["w/Ftrl:0", "w/Ftrl_1:0"],
    ),
    (
        "ftrl0",
        False,
        [
            [0.4875, 0.92695, 1.36641],
            [1.80586, 2.24531, 2.68477],
            [3.12422, 3.56367, 4.00312],
            [4.44258, 4.88203, 5.32149],
        ],
        ["w/Ftrl:0", "w/Ftrl_1:0"],
    ),
    (
        "ftrl0",
        True,
        [
            [0.1, 0.2, 0.3],
            [0.8, 1.0, 1.2],
            [-0.05, -0.05, -0.05],
            [1.0, 1.1, 1.2],
        ],
        ["w/Ftrl:0", "w/Ftrl_1:0"],
    ),
    (
        "pgd",
        False,
        [
            [0.0, 0.00749, 0.04286],
            [0.07822, 0.11358, 0.14894],
            [0.1843, 0.21967, 0.25503],
            [0.29039, 0.32575, 0.36112],
        ],
        [],
    ),
    (
        "pgd",
        True,
        [
            [0.1, 0.2, 0.3],
            [0.08762, 0.12777, 0.16792],
            [0.38222, 0.44654, 0.51085],
            [1.0, 1.1, 1.2],
        ],
        [],
    ),
    (
        "pada",
        False,
        [
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [0.0052, 0.05745, 0.11775],
        ],
        ["w/ProximalAdagrad:0"],
    ),
    (
        "pada",
        True,
        [
            [0.1, 0.2, 0.3],
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [1.0, 1.1, 1.2],
        ],
        ["w/ProximalAdagrad:0"],
    ),
    (
        "da",
        False,
        [
            [-0.0306, -0.02956, -0.02701],
            [-0.02711, -0.03299, -0.04189],
            [-0.05395, -0.06797, -0.08297],
            [-0.09828, -0.11346, -0.12824],
        ],
        ["w/AdagradDA:0", "w/AdagradDA_1:0"],
    ),
    (
        "da",
        True,
        [
            [0.1, 0.2, 0.3],
            [-0.04484, -0.04975, -0.05875],
            [-0.0707, -0.08407, -0.09815],
            [1.0, 1.1, 1.2],
        ],
        ["w/AdagradDA:0", "w/AdagradDA_1:0"],
    ),
]


@pytest.mark.parametrize("name, sparse, expected, slots", ROWS)
def test_four_steps(name: str, sparse: bool, expected: Any, slots: list[str]) -> None:
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    optimizer = MAKE[name](step)
    w = tf.Variable(np.arange(1, 13, dtype=np.float32).reshape(4, 3) * np.float32(0.1), name="w")
    x = tf.nn.embedding_lookup(w, [1, 2, 1]) if sparse else w * 1.5
    train = optimizer.minimize(tf.reduce_sum(tf.square(x) + x * 0.1), global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(train)
        found = session.run(w)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    known = ("w:0", "Variable:0")
    assert sorted(v.name for v in tf.global_variables() if v.name not in known) == slots


def test_slots_of_parts_are_parts_and_lie_beside_them() -> None:
    with tf.device("/job:ps/task:1"):
        w = tf.get_variable("w", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(tf.reduce_sum(tf.square(w.as_tensor())))
    slots: list[Any] = [optimizer.get_slot(part, "momentum") for part in w]
    assert [s.slice_info.full_name for s in slots] == ["w/Momentum"] * 2
    assert [s.slice_info.spec for s in slots] == ["5 2 0,3:0,2", "5 2 3,2:0,2"]
    assert {s.device for s in slots} == {"/job:ps/task:1"}


def test_numbers_out_of_range() -> None:
    with pytest.raises(errors.ArgumentError, match=r"learning_rate_power <= 0, got 1\.0"):
        tf.train.FtrlOptimizer(0.1, 1.0)
    with pytest.raises(errors.ArgumentError, match="l1_regularization_strength >= 0, got -1"):
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-1)
    with pytest.raises(errors.ArgumentError, match="initial_accumulator_value: expected > 0"):
        tf.train.ProximalAdagradOptimizer(0.1, 0.0)


@pytest.mark.parametrize("make", [
    lambda: tf.train.GradientDescentOptimizer(0.1), lambda: tf.train.AdagradOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9), lambda: tf.train.FtrlOptimizer(0.1),
    lambda: tf.train.AdadeltaOptimizer(0.1),
])  # fmt: skip
def test_sparse_updates_touch_only_their_rows(make: Callable[[], Any]) -> None:
    table = tf.get_variable("table", [50_000, 8])
    ids = tf.placeholder(tf.int64, [None])
    train = make().minimize(tf.reduce_sum(tf.nn.embedding_lookup(table, ids)))
    given = {ids: np.array([7, 49_999, 7, 3])}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(table)
        session.run(train, given)
        after = session.run(table)
        report = session.profile(train, given, runs=1)
        session.run(train, {ids: np.zeros(0, np.int64)})
        assert np.array_equal(session.run(table)[:3], after[:3])
        with pytest.raises(tf.errors.InvalidArgumentError, match="50000"):
            session.run(train, {ids: [1, 50_000]})
        assert np.array_equal(session.run(table)[:3], after[:3])
    assert np.nonzero((before != after).any(1))[0].tolist() == [3, 7, 49_999]
    assert "copy" not in report  # the table is changed in place


def test_averages_of_tensors_without_their_beginning() -> None:
    x = tf.placeholder(tf.float32, [2])
    plain = tf.train.ExponentialMovingAverage(0.9, name="plain")
    debiased = tf.train.ExponentialMovingAverage(0.9, zero_debias=True, name="debiased")
    update = tf.group(plain.apply([x]), debiased.apply([x]))
    names = {v.op.name for v in tf.global_variables()}
    assert {"Placeholder/debiased/biased", "Placeholder/debiased/local_step"} <= names
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in (10.0, 20.0):
            session.run(update, {x: [value, -value]})
        found = session.run([plain.average(x), debiased.average(x)])
    np.testing.assert_allclose(found[0], [2.9, -2.9], rtol=1e-6)  # 0.9 * 1 + 0.1 * 20
    np.testing.assert_allclose(found[1], np.array([2.9, -2.9]) / (1 - 0.9**2), rtol=1e-6)
