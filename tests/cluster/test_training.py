"""Replicated training over servers in this process: together, alone, waiting, coming back."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from tests.cluster.processes import free_addresses

SLOPE = np.array([[1.0], [-2.0], [3.0]], np.float32)


class Tasks:
    """Servers of this process.

    Args:
        jobs: how many tasks each job has.
    """

    def __init__(self, **jobs: int) -> None:
        self.spec = {job: free_addresses(count) for job, count in jobs.items()}
        self.servers: dict[tuple[str, int], Any] = {}
        for job, count in jobs.items():
            for index in range(count):
                self.start(job, index)

    def start(self, job: str, index: int) -> None:
        self.servers[job, index] = tf.train.Server(self.spec, job, index)

    def stop(self, job: str, index: int) -> None:
        self.servers.pop((job, index)).stop()

    def target(self, index: int) -> str:
        return self.servers["worker", index].target


@pytest.fixture
def tasks() -> Iterator[Callable[..., Tasks]]:
    made: list[Tasks] = []

    def make(**jobs: int) -> Tasks:
        made.append(Tasks(**jobs))
        return made[-1]

    yield make
    for one in made:
        for server in one.servers.values():
            server.stop()


def model(tasks: Tasks, index: int) -> tuple[Any, Any, Any, Any, Any]:
    """Feeds, loss, weights and step of a linear regression, as each worker builds it."""
    place = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{index}", cluster=tasks.spec
    )
    with tf.device(place):
        step = tf.train.get_or_create_global_step()
        x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        return x, y, tf.reduce_mean(tf.square(tf.matmul(x, w) - y)), w, step


def batch(rng: Any) -> tuple[Any, Any]:
    x = rng.normal(size=(16, 3)).astype(np.float32)
    return x, x @ SLOPE


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work(i)` returns, each in a thread; the first error is raised."""
    found: list[Any] = [None] * count
    failed: list[BaseException] = []

    def run(index: int) -> None:
        try:
            found[index] = work(index)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failed:
        raise failed[0]
    assert not any(thread.is_alive() for thread in threads)
    return found


def trained(tasks: Tasks, index: int, last: int, sync: dict[str, Any] | None = None) -> Any:
    """A worker: trains to a step; returns the weights and the step that it saw last."""
    with tf.Graph().as_default():
        x, y, loss, w, step = model(tasks, index)
        hooks: list[Any] = [tf.train.StopAtStepHook(last_step=last)]
        with tf.device(tf.train.replica_device_setter(cluster=tasks.spec)):
            optimizer: Any = tf.train.GradientDescentOptimizer(0.1)
            if sync is not None:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, **sync)
                hooks.append(optimizer.make_session_run_hook(index == 0))
            train = optimizer.minimize(loss, global_step=step)
        rng = np.random.default_rng(index)
        seen: Any = None
        with tf.train.MonitoredTrainingSession(
            tasks.target(index), index == 0, hooks=hooks, stop_grace_period_secs=5
        ) as session:
            while not session.should_stop():
                a, b = batch(rng)
                _, *seen = session.run([train, w, step], {x: a, y: b})
        return seen


def test_workers_share_variables_and_the_step(tasks: Any) -> None:
    cluster = tasks(ps=2, worker=2)
    found = in_threads(2, lambda index: trained(cluster, index, 60))
    best = max(found, key=lambda seen: seen[1])
    assert 60 <= best[1] <= 62  # both count the same step
    np.testing.assert_allclose(best[0], SLOPE, atol=0.2)


@pytest.mark.parametrize("placed", [True, False])
def test_synchronous_steps_are_means_of_gradients(
    tasks: Any, monkeypatch: Any, placed: bool
) -> None:
    """With one batch for all, whoever comes first: late gradients would be of other weights."""
    if not placed:
        monkeypatch.setattr(tf.train, "replica_device_setter", lambda **_: None)
    cluster = tasks(ps=1, worker=3)
    same = batch(np.random.default_rng(0))
    monkeypatch.setattr(f"{__name__}.batch", lambda rng: same)
    sync = {"replicas_to_aggregate": 2, "total_num_replicas": 3}
    in_threads(3, lambda index: trained(cluster, index, 8, sync))
    with tf.Graph().as_default():
        *_, w, step = model(cluster, 0)
        with tf.Session(cluster.target(0)) as session:
            weights, steps = session.run([w, step])
    expected = np.zeros((3, 1), np.float32)
    a, b = same
    for _ in range(steps):
        expected -= 0.1 * 2 * a.T @ (a @ expected - b) / 16
    assert steps >= 8
    np.testing.assert_allclose(weights, expected, rtol=1e-4)


def test_a_worker_waits_for_its_chief(tasks: Any) -> None:
    cluster = tasks(ps=1, worker=2)
    began = threading.Event()

    def work(index: int) -> Any:
        if index == 0:
            began.wait(1.0)  # so that the worker looks first, and waits
        else:
            threading.Timer(0.5, began.set).start()
        return trained(cluster, index, 10)

    assert max(seen[1] for seen in in_threads(2, work)) >= 10
    with tf.Graph().as_default():
        tf.Variable(0.0, name="never")
        late = tf.train.WorkerSessionCreator(
            master=cluster.target(1), max_wait_secs=0.3, recovery_wait_secs=0.05
        )
        with pytest.raises(tf.errors.DeadlineExceededError, match="without a value: never"):
            late.create_session()


def test_recovers_when_a_parameter_server_comes_back(tasks: Any, tmp_path: Path) -> None:
    """From the last checkpoint; the failed step is made again."""
    cluster = tasks(ps=1, worker=1)
    with tf.Graph().as_default():
        x, y, loss, w, step = model(cluster, 0)
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        rng = np.random.default_rng(0)
        seen: list[int] = []
        weights: Any = None
        with tf.train.MonitoredTrainingSession(
            cluster.target(0), True, str(tmp_path), save_checkpoint_secs=None,
            save_checkpoint_steps=10, hooks=[tf.train.StopAtStepHook(last_step=40)],
        ) as session:  # fmt: skip
            while not session.should_stop():
                if len(seen) == 25:
                    cluster.stop("ps", 0)
                    threading.Timer(0.5, cluster.start, ("ps", 0)).start()
                a, b = batch(rng)
                _, at, weights = session.run([train, step, w], {x: a, y: b})
                seen.append(int(at))
    assert seen[:25] == list(range(1, 26))
    assert seen[25:] == list(range(seen[25], 41))
    assert 20 <= seen[25] <= 22  # went on from the checkpoint at 20 or 21
    np.testing.assert_allclose(weights, SLOPE, atol=0.3)


def test_stale_gradients_are_dropped_and_counted(tasks: Any) -> None:
    cluster = tasks(ps=1, worker=2)
    with tf.Graph().as_default(), contextlib.ExitStack() as stack:
        with tf.device("/job:ps/task:0"):
            kept = tf.ConditionalAccumulator(tf.float32, [2], shared_name="kept")
            step = tf.placeholder(tf.int64, [])
            give = kept.apply_grad([1.0, 2.0], step)
            take, stale = kept.take_grad(2), kept.num_stale()
        sessions = [stack.enter_context(tf.Session(cluster.target(i))) for i in range(2)]
        for session in (*sessions, sessions[0]):
            session.run(give, {step: 0})
        assert sessions[1].run(take).tolist() == [1.0, 2.0]
        sessions[0].run(give, {step: 0})  # late: the accumulator is at step 1 now
        sessions[1].run(give, {step: 1})
        assert sessions[0].run(stale) == 1


def test_lookups_in_parts_fetch_rows_of_each_server(tasks: Any) -> None:
    cluster = tasks(ps=2, worker=1)
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            step = tf.train.get_or_create_global_step()
            parts = tf.get_variable(
                "table", initializer=table, partitioner=tf.fixed_size_partitioner(2)
            )
            ids = tf.placeholder(tf.int64, [None])
            rows = tf.nn.embedding_lookup(parts, ids, "div")
            train = tf.train.GradientDescentOptimizer(0.5).minimize(
                tf.reduce_sum(rows), global_step=step
            )
        assert [part.device for part in parts] == ["/job:ps/task:1", "/job:ps/task:0"]
        with tf.Session(cluster.target(0)) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(rows, {ids: [9, 0, 4]}).tolist() == table[[9, 0, 4]].tolist()
            session.run(train, {ids: [9, 0, 9]})
            found = session.run(parts.as_tensor())
    expected = table.copy()
    np.add.at(expected, [9, 0, 9], -0.5)
    assert np.array_equal(found, expected)


def test_synchronous_steps_with_row_sparse_gradients(tasks: Any) -> None:
    """Accumulators of rows; the moving average follows each step."""
    cluster = tasks(ps=1, worker=1)
    setter = tf.train.replica_device_setter(cluster=cluster.spec)
    with tf.Graph().as_default(), tf.device(setter):
        step = tf.train.get_or_create_global_step()
        table = tf.get_variable("table", [6, 2], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 4, 1]))
        average = tf.train.ExponentialMovingAverage(0.5)
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.25), 1, variable_averages=average,
            variables_to_average=[table],
        )  # fmt: skip
        train = optimizer.minimize(loss, global_step=step)
        hooks = [optimizer.make_session_run_hook(True, 0), tf.train.StopAtStepHook(last_step=2)]
        found = mean = np.zeros(0)
        with tf.train.MonitoredTrainingSession(
            cluster.target(0), hooks=hooks, stop_grace_period_secs=5
        ) as session:
            while not session.should_stop():
                _, found, mean = session.run([train, table, average.average(table)])
    assert found[:, 0].tolist() == [1.0, 0.0, 1.0, 1.0, 0.5, 1.0]
    assert mean[4, 0] in (0.875, 0.6875)  # before or after the second update of the average


class _Interrupted(tf.train.SessionRunHook):
    """Has a thread, as of a chief, that fails while the step waits for what it would bring."""

    def __init__(self, put: Any) -> None:
        self._put, self.sessions = put, 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.sessions += 1

        def work() -> None:
            if self.sessions == 1:
                coord.wait_for_stop(0.1)
                coord.request_stop(tf.errors.UnavailableError(None, None, "a server has gone"))
            else:
                session.run(self._put)

        thread = threading.Thread(target=work, daemon=True)
        coord.register_thread(thread)
        thread.start()


def test_an_interrupted_thread_ends_the_step_that_waits_for_it() -> None:
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1, tf.float32, [[]])
        got, hook = queue.dequeue(), _Interrupted(queue.enqueue(3.0))
        with tf.train.MonitoredSession(hooks=[hook], stop_grace_period_secs=5) as session:
            assert session.run(got) == 3
    assert hook.sessions == 2
