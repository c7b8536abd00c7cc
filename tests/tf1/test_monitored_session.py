"""Monitored sessions and hooks: TensorFlow's order of calls, and errors."""

import json
import logging

import numpy as np
import pytest

import weft.tf1 as tf


@pytest.fixture(autouse=True)
def _no_writers():
    yield
    tf.summary.FileWriterCache.clear()


class Recorder(tf.train.SessionRunHook):
    """Writes down each call."""

    def __init__(self, name, calls, fetch=None):
        self.name, self.calls, self.fetch = name, calls, fetch

    def begin(self):
        self.calls.append(f"{self.name}.begin")

    def after_create_session(self, session, coord):
        assert not coord.should_stop() and session.graph.finalized
        self.calls.append(f"{self.name}.created")

    def before_run(self, run_context):
        self.calls.append(f"{self.name}.before")
        return None if self.fetch is None else tf.train.SessionRunArgs({"value": self.fetch})

    def after_run(self, run_context, run_values):
        found = "" if self.fetch is None else f" {run_values.results['value']}"
        self.calls.append(f"{self.name}.after{found}")

    def end(self, session):
        self.calls.append(f"{self.name}.end")


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, calls):
        self.calls = calls

    def before_save(self, session, global_step_value):
        self.calls.append(f"save {global_step_value}")

    def end(self, session, global_step_value):
        self.calls.append(f"saved {global_step_value}")


def halving():
    """`w` is halved in each step, which a variable counts that only its name tells."""
    w = tf.Variable(1.0, name="w")
    step = tf.Variable(0, name="global_step", trainable=False)
    train = tf.train.GradientDescentOptimizer(0.25).minimize(w * w, global_step=step)
    return w, tf.identity(w), train


# Written down from TensorFlow 2.21 in its version 1 mode.
BEGUN = "c.begin a.begin c.created save 0 a.created"
STEPS = [
    "c.before a.before c.after a.after 1.0",
    "c.before a.before c.after save 2 a.after 0.5",
    "c.before a.before c.after a.after 0.25",
]
ENDED = "c.end save 3 saved 3 a.end"
AGAIN = "c.created save 2 a.created"
ORDERS = {
    "stop": [BEGUN, *STEPS, ENDED],
    "end of data": [BEGUN, *STEPS, ENDED],
    "error": [BEGUN, *STEPS],
    "interrupt": [BEGUN, *STEPS],
    "aborted": [BEGUN, *STEPS[:2], AGAIN, STEPS[2], ENDED],
}
RAISED = {"end of data": tf.errors.OutOfRangeError(None, None, "end"), "error": KeyError("own"),
          "interrupt": KeyboardInterrupt()}  # fmt: skip


@pytest.mark.parametrize("how", ORDERS)
def test_order_of_calls(how, tmp_path):
    calls, runs = [], []
    _, before, train = halving()
    saver = tf.train.Saver()
    listening = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, saver=saver, listeners=[Listener(calls)]
    )

    def step(step_context):
        runs.append(how)
        if how == "aborted" and len(runs) == 3:
            raise tf.errors.AbortedError(None, None, "gone")
        return step_context.run_with_hooks(train)

    def loop():
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_secs=None,
            chief_only_hooks=[Recorder("c", calls), listening],
            hooks=[Recorder("a", calls, before), tf.train.StopAtStepHook(last_step=3)],
        ) as session:  # fmt: skip
            while not session.should_stop():
                session.run_step_fn(step)
                if len(runs) == 3 and how in RAISED:
                    raise RAISED[how]
        assert session.should_stop() and session.graph is None

    if how in ("error", "interrupt"):
        with pytest.raises(type(RAISED[how])):
            loop()
    else:
        loop()
    assert " ".join(calls) == " ".join(ORDERS[how])
    last = 2 if how in ("error", "interrupt") else 3
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith(f"model.ckpt-{last}")
    files = sorted(p.stem for p in tmp_path.glob("model*.safetensors"))
    assert files == [f"model.ckpt-{step}" for step in (0, 2, 3) if step <= last]
    assert not tf.get_default_graph().finalized


def test_continues_where_it_was_saved(tmp_path):
    w, _, train = halving()
    tf.get_local_variable("passes", [], initializer=tf.zeros_initializer())
    beginnings = []
    scaffold = dict(init_fn=lambda scaffold, session: beginnings.append(session.run(w)))
    for last in (3, 5):
        stop = tf.train.StopAtStepHook(num_steps=last - 3 * len(beginnings))
        final = tf.train.FinalOpsHook({"w": w, "step": tf.train.get_global_step()})
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path),
            hooks=[stop, final],
            scaffold=tf.train.Scaffold(**scaffold),
        ) as session:
            while not session.should_stop():
                session.run(train)
            with pytest.raises(RuntimeError, match="expected a session that goes on"):
                session.run(train)
        assert final.final_ops_values == {"w": 0.5**last, "step": last}
    assert beginnings == [1.0]  # the second time, the checkpoint was restored
    with tf.train.SingularMonitoredSession(
        checkpoint_filename_with_path=str(tmp_path / "model.ckpt-3")
    ) as session:
        assert session.raw_session().run(w) == 0.125
    with pytest.raises(RuntimeError, match="already closed"):
        session.close()


def test_one_program_has_what_hooks_ask_for(tmp_path, caplog):
    x = tf.placeholder(tf.float32, [], name="x")
    w, before, train = halving()
    scale = tf.multiply(before, x, name="scale")
    tf.summary.scalar("rate", scale)
    calls = []
    hooks = [
        tf.train.LoggingTensorHook({"value": scale, "b": "scale"}, every_n_iter=2),
        tf.train.LoggingTensorHook([w], at_end=True, formatter=lambda v: f"last {v[w]}"),
        tf.train.FeedFnHook(lambda: {x: 0.1}),
        tf.train.NanTensorHook(scale),
        tf.train.ProfilerHook(save_steps=3, output_dir=str(tmp_path)),
        tf.train.StopAtStepHook(last_step=4),
    ]
    caplog.set_level(logging.INFO, "tensorflow")
    with tf.train.MonitoredTrainingSession(
        summary_dir=str(tmp_path), hooks=hooks, save_summaries_steps=2, log_step_count_steps=2
    ) as session:
        raw = session._hooked.session
        run, raw.run = raw.run, lambda *args: calls.append(args) or run(*args)
        while not session.should_stop():
            session.run(train)
    assert len([c for c in calls if len(c) == 4]) == 4  # one a step
    texts = [r.getMessage() for r in caplog.records]
    assert texts[1] == "b = 0.1, value = 0.1" and texts[-1] == "last 0.0625"
    assert any(t.startswith("b = 0.025, value = 0.025 (0.") for t in texts)
    assert any(t.startswith("global_step/sec: ") for t in texts)
    (file,) = tmp_path.glob("events*")
    found = [(e.step, v.tag, v.simple_value) for e in tf.train.summary_iterator(str(file))
             for v in (e.summary.value if e.summary else ())]  # fmt: skip
    assert [f for f in found if f[1] == "rate"] == [
        (1, "rate", np.float32(0.1)), (3, "rate", np.float32(0.1) / 4),
    ]  # fmt: skip
    assert [f[:2] for f in found if f[1] != "rate"] == [(3, "global_step/sec")]
    (trace,) = tmp_path.glob("timeline-3.json")
    assert json.loads(trace.read_text())["traceEvents"]


def test_nan_ends_training():
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(y, False)]) as session:
        assert session.run(y, {x: 1}) == 2.0 and not session.should_stop()
        assert np.isnan(session.run(y, {x: np.nan})) and session.should_stop()
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"),
        tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(y)]) as session,
    ):
        session.run(y, {x: np.nan})


def test_the_end_of_data_ends_the_loop():
    source = tf.data.Dataset.range(3).make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, source.initializer)
    number, found = source.get_next(), []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(int(session.run(number)))
    assert found == [0, 1, 2]
    names = tf.train.slice_input_producer([np.array([4.0, 5.0])], num_epochs=1, shuffle=False)
    batch = tf.train.batch(names, 1)
    found = []
    with tf.train.SingularMonitoredSession(stop_grace_period_secs=10) as session:
        while not session.should_stop():
            found.append(float(session.run(batch)[0]))
    assert found == [4.0, 5.0]


def test_errors(tmp_path):
    x = tf.placeholder(tf.float32, [])
    feeding = tf.train.FeedFnHook(lambda: {x: 1.0})
    with tf.train.MonitoredSession(hooks=[feeding]) as session:
        assert session.run(x) == 1.0
        with pytest.raises(ValueError, match=r"a hook feeds .* again"):
            session.run(x, {x: 2.0})
        with pytest.raises(ValueError, match="expected a function of step_context"):
            session.run_step_fn(lambda other: None)
    with pytest.raises(RuntimeError, match="StopAtStepHook: expected a global step in the graph"):
        tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(3)])
    for hook, options in (
        (tf.train.StopAtStepHook, {}),
        (tf.train.StopAtStepHook, {"num_steps": 1, "last_step": 2}),
        (tf.train.SecondOrStepTimer, {"every_secs": 1, "every_steps": 2}),
        (tf.train.LoggingTensorHook, {"tensors": [x]}),
        (tf.train.LoggingTensorHook, {"tensors": [x], "every_n_iter": 0}),
        (tf.train.SummarySaverHook, {"save_steps": 1}),
        (tf.train.StepCounterHook, {"every_n_steps": 1, "every_n_secs": 1}),
    ):
        with pytest.raises(ValueError, match=r"expected|either"):
            hook(**options)
    tf.reset_default_graph()
    tf.Variable(1.0, name="w")
    with pytest.raises(tf.errors.DeadlineExceededError, match="without a value: w; without"):
        tf.train.MonitoredTrainingSession(is_chief=False)
    tf.get_default_graph().unfinalize()
    lazy = tf.train.Scaffold(init_op=tf.no_op())
    with pytest.raises(RuntimeError, match=r"Variables not initialized: w"):
        tf.train.MonitoredSession(tf.train.ChiefSessionCreator(lazy))


def test_threads_and_interrupted_sessions():
    """What a thread stops with is raised at the end; what a thread counts is waited for."""
    step = tf.train.get_or_create_global_step()
    count, seen = step.assign_add(1), []

    class Threads(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            self.coord = coord
            seen.append(session)
            if len(seen) == 1:
                raise tf.errors.UnavailableError(None, None, "not yet")
            session.run(count)

    threads = Threads()
    hooks = [threads, tf.train.GlobalStepWaiterHook(1)]
    with (
        pytest.raises(KeyError, match="of a thread"),
        tf.train.MonitoredSession(hooks=hooks) as session,
    ):
        assert session.run(step) == 1 and len(seen) == 2
        threads.coord.request_stop(tf.errors.AbortedError(None, None, "gone"))
        assert not session.should_stop() and session.run(step) == 1  # by a third session
        threads.coord.request_stop(KeyError("of a thread"))
        assert session.should_stop()
    for made in seen:
        with pytest.raises(RuntimeError, match="closed"):
            made.run(step)
    assert len(seen) == 3


def test_supervisor(tmp_path):
    """A plain session, beside which threads save; it restores what the program saved at the end."""
    w, _, train = halving()
    tf.summary.scalar("rate", tf.identity(w))
    ended = []
    for last in (3, 5):
        supervisor = tf.train.Supervisor(logdir=tmp_path, save_model_secs=1, save_summaries_secs=1)

        def step(session, limit, supervisor=supervisor):
            if not ended:
                ended.append("aborted")
                raise tf.errors.AbortedError(None, None, "gone")
            session.run(train)
            if session.run(supervisor.global_step) == limit:
                path = supervisor.saver.save(session, supervisor.save_path, supervisor.global_step)
                ended.append((path.rpartition("-")[2], float(session.run(w))))
                supervisor.request_stop()

        tf.train.basic_train_loop(supervisor, step, [last])
        tf.get_default_graph().unfinalize()
    assert ended == ["aborted", ("3", 0.125), ("5", 0.03125)]
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-5")
    tags = {v.tag for path in tmp_path.glob("events*") for e in tf.train.summary_iterator(str(path))
            for v in (e.summary.value if e.summary else ())}  # fmt: skip
    assert tags == {"rate", "global_step/sec"}
    with pytest.raises(KeyError), tf.train.Supervisor().managed_session() as session:
        raise KeyError
    with tf.train.Supervisor().managed_session() as session:
        raise tf.errors.OutOfRangeError(None, None, "the end")
    with pytest.raises(RuntimeError, match="closed"):
        session.run(w)
