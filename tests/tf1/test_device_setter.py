"""`replica_device_setter` and its strategies: devices as TensorFlow 1.15 chooses them."""

from __future__ import annotations

from typing import Any

import pytest

import weft.tf1 as tf
from weft import errors
from weft.cluster.spec import ClusterSpec

CLUSTER = {"ps": ["a:1", "b:1", "c:1"], "worker": ["d:1", "e:1"]}


def _devices(**options: Any) -> list[str]:
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(**options)):
        v = tf.Variable([1, 2])
        with tf.device("/cpu:0"):
            w = tf.Variable([2, 1])
            a = v + w
        with tf.device("/job:moon"):
            x = tf.Variable([3, 4])
            with tf.device("/job:ps"):
                y = tf.Variable([3, 4])
        with tf.device(None):
            z = tf.Variable([3, 4])
        assert all(t.device == t.initializer.device for t in (v, w, x, y, z))
        return [t.device for t in (v, w, a, x, y, z)]


# Options, and the devices that TensorFlow 2.21 chooses in its version 1 mode
ROWS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"cluster": CLUSTER},
        ["/job:ps/task:0", "/job:ps/task:1/device:CPU:0", "/job:worker/device:CPU:0", "/job:moon",
         "/job:ps/task:2", ""],
    ),
    (
        {"ps_tasks": 2, "ps_device": "/job:moon/cpu:0", "worker_device": "/job:sun/task:3"},
        ["/job:moon/task:0/device:CPU:0", "/job:moon/task:1/device:CPU:0",
         "/job:sun/task:3/device:CPU:0", "/job:moon/task:0/device:CPU:0", "/job:ps/device:CPU:0",
         ""],
    ),
    (
        {"cluster": CLUSTER, "merge_devices": False},
        ["/job:ps/task:0", "/device:CPU:0", "/device:CPU:0", "/job:moon", "/job:ps", ""],
    ),
    (
        {"ps_tasks": 1, "ps_device": "/cpu:0"},
        ["/device:CPU:0", "/device:CPU:0", "/job:worker/device:CPU:0", "/job:moon/device:CPU:0",
         "/job:ps/device:CPU:0", ""],
    ),
    (
        {"ps_tasks": 2, "ps_device": ""},
        ["/job:worker", "/job:worker/device:CPU:0", "/job:worker/device:CPU:0", "/job:moon",
         "/job:ps", ""],
    ),
    ({"ps_tasks": 0}, ["", "/device:CPU:0", "/device:CPU:0", "/job:moon", "/job:ps", ""]),
    ({"cluster": {"worker": ["a:1"]}},
     ["", "/device:CPU:0", "/device:CPU:0", "/job:moon", "/job:ps", ""]),
]  # fmt: skip


@pytest.mark.parametrize("options, expected", ROWS)
def test_devices(options: dict[str, Any], expected: list[str]) -> None:
    assert _devices(**options) == expected


def test_an_optimizers_variables_and_updates_lie_with_theirs() -> None:
    with tf.device(tf.train.replica_device_setter(cluster=ClusterSpec(CLUSTER))):
        w, u = tf.get_variable("w", [3]), tf.get_variable("u", [3])
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdamOptimizer()
        train = optimizer.minimize(tf.reduce_sum(w * u), global_step=step)
    for v in (w, u):
        slots: list[Any] = [optimizer.get_slot(v, name) for name in ("m", "v")]
        applied = tf.get_default_graph().get_operation_by_name(f"Adam/update_{v.op.name}/ApplyAdam")
        assert {v.device} == {s.device for s in slots} == {applied.device}
    assert [w.device, u.device, step.device] == [f"/job:ps/task:{i}" for i in range(3)]
    assert train.device == step.device


def test_strategies() -> None:
    made: list[list[str]] = []
    for strategy in (
        tf.contrib.training.RandomStrategy(2, seed=0),
        tf.contrib.training.GreedyLoadBalancingStrategy(2, tf.contrib.training.byte_size_load_fn),
        tf.contrib.training.GreedyLoadBalancingStrategy(2, lambda op: 1),
    ):
        setter = tf.train.replica_device_setter(2, ps_strategy=strategy)
        with tf.Graph().as_default(), tf.device(setter):
            variables = [tf.Variable(tf.zeros(n)) for n in ([2, 2], [2, 1], [2, 2], [1, 3])]
        made.append([v.device[-1] for v in variables])
    assert ["".join(tasks) for tasks in made] == ["1011", "0110", "0101"]
    wrong: Any = 3
    with pytest.raises(errors.DTypeError, match="expected a function as ps_strategy, got 3"):
        tf.train.replica_device_setter(2, ps_strategy=wrong)


def test_a_group_over_devices_has_one_signal_from_each() -> None:
    with tf.device("/job:ps/task:0"):
        a, b = tf.constant(1), tf.constant(2)
    with tf.device("/job:ps/task:1"):
        c = tf.constant(3)
    done = tf.group(a, b, c, name="done")
    assert [(op.name, op.device) for op in done.control_inputs] == [
        ("done/NoOp", "/job:ps/task:0"), ("done/NoOp_1", "/job:ps/task:1"),
    ]  # fmt: skip
