"""`tf.train.MonitoredTrainingSession`: a session with the hooks that training needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.tf1.session.options import ConfigProto
from weft.tf1.train.hook.run_hook import SessionRunHook
from weft.tf1.train.hook.saving import CheckpointSaverHook, SummarySaverHook
from weft.tf1.train.hook.step import StepCounterHook
from weft.tf1.train.monitored.creator import ChiefSessionCreator, WorkerSessionCreator
from weft.tf1.train.monitored.scaffold import Scaffold
from weft.tf1.train.monitored.session import MonitoredSession

_DEFAULT: Any = object()


def MonitoredTrainingSession(
    master: str = "", is_chief: bool = True, checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None, hooks: Iterable[SessionRunHook] | None = None,
    chief_only_hooks: Iterable[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = _DEFAULT, save_summaries_steps: int | None = _DEFAULT,
    save_summaries_secs: float | None = _DEFAULT, config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120, log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200, save_checkpoint_steps: int | None = _DEFAULT,
    summary_dir: str | None = None,
) -> MonitoredSession:  # fmt: skip
    """A session that restores the newest checkpoint, saves checkpoints, and writes summaries.

    Args:
        master: the target of the session: a server of a cluster, or "" for this process.
        is_chief: initializes or restores variables, and writes files; the others wait for it. In
            this process every session has its own variables, so that all ranks of a job are chiefs,
            one of which has a folder.
        checkpoint_dir: the folder of checkpoints; without it, nothing is saved or restored.
        scaffold: the operations; `Scaffold()` by default.
        hooks: called in this order, after the session's own.
        chief_only_hooks: called before the session's own, on a chief.
        save_checkpoint_secs, save_checkpoint_steps: how often to save: every 600 seconds by
            default, never if both are `None` or 0; seconds take precedence.
        save_summaries_steps, save_summaries_secs: how often to write summaries: every 100 steps by
            default, never if both are `None` or 0.
        config: options of the session.
        stop_grace_period_secs: the seconds that threads have to end when it is closed.
        log_step_count_steps: the number of steps between logs of the speed.
        max_wait_secs: how long a worker waits for the chief.
        summary_dir: the folder of summaries; by default the checkpoints' folder.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default():
    ...     w = tf.Variable([1.0, 2.0])
    ...     step = tf.train.get_or_create_global_step()
    ...     loss = tf.reduce_sum(w * w)
    ...     train = tf.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=step)
    ...     with tf.train.MonitoredTrainingSession(
    ...         hooks=[tf.train.StopAtStepHook(last_step=3)]
    ...     ) as session:
    ...         while not session.should_stop():
    ...             _, value = session.run([train, loss])
    >>> float(value)
    0.3125
    """
    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks, stop_grace_period_secs)
    summaries = _chosen(save_summaries_steps, save_summaries_secs, 100)
    secs, steps = _chosen(save_checkpoint_secs, save_checkpoint_steps, 600)
    folder = summary_dir or checkpoint_dir
    every = list(chief_only_hooks or ())
    if folder and log_step_count_steps:
        every.append(StepCounterHook(log_step_count_steps, output_dir=folder))
    if folder and any(summaries):
        every.append(SummarySaverHook(*summaries, output_dir=folder, scaffold=scaffold))
    if checkpoint_dir and (secs or steps):
        steps = None if secs else steps
        every.append(CheckpointSaverHook(checkpoint_dir, secs or None, steps, scaffold=scaffold))
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(chief, [*every, *(hooks or ())], stop_grace_period_secs)


def _chosen(first: Any, second: Any, default: int) -> tuple[Any, Any]:
    """Both intervals; the first has a default if neither is given."""
    if first is _DEFAULT and second is _DEFAULT:
        return default, None
    return (None if first is _DEFAULT else first), (None if second is _DEFAULT else second)
