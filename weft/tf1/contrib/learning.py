"""`slim.learning`: a training operation, and a loop that runs it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import weft.tf1 as tf
from weft.tf1.control import check

__all__ = ["clip_gradient_norms", "create_train_op", "multiply_gradients", "train", "train_step"]

_STEP = "USE_GLOBAL_STEP"


def clip_gradient_norms(gradients_to_variables: Any, max_norm: float) -> list[Any]:
    """Each gradient with a norm of at most `max_norm`."""
    return [
        (g if g is None else tf.clip_by_norm(g, max_norm), v) for g, v in gradients_to_variables
    ]


def multiply_gradients(grads_and_vars: Any, gradient_multipliers: Any) -> list[Any]:
    """Gradients times the factors of their variables.

    Args:
        grads_and_vars: pairs.
        gradient_multipliers: a dict from variables or their names to factors.
    """
    factors = {getattr(getattr(k, "op", k), "name", k): f for k, f in gradient_multipliers.items()}
    return [
        (g * factors[v.op.name] if g is not None and v.op.name in factors else g, v)
        for g, v in grads_and_vars
    ]


def create_train_op(
    total_loss: Any, optimizer: Any, global_step: Any = _STEP, update_ops: Any = None,
    variables_to_train: Any = None, transform_grads_fn: Callable[[Any], Any] | None = None,
    clip_gradient_norm: float = 0, summarize_gradients: bool = False, gate_gradients: int = 1,
    aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Any = None, check_numerics: bool = True,
) -> Any:  # fmt: skip
    """The loss, which when it is computed has taken a step.

    Args:
        total_loss: a scalar.
        optimizer: an optimizer.
        global_step: a step counter; the graph's by default, none for `None`.
        update_ops: what runs before; by default the operations in `UPDATE_OPS`.
        variables_to_train: all by default.
        transform_grads_fn: a function of the list of (gradient, variable).
        clip_gradient_norm: the greatest norm of each gradient; 0 for any.
        summarize_gradients: write histograms of them.
        gradient_multipliers: a dict from variables or their names to factors.
        check_numerics: raise for a loss that is not finite.
        gate_gradients, aggregation_method, colocate_gradients_with_ops: accepted.
    """
    del gate_gradients
    step = tf.train.get_or_create_global_step() if global_step is _STEP else global_step
    before = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if update_ops is None else list(update_ops)
    if before:
        with tf.control_dependencies(before):
            total_loss = tf.identity(total_loss)
    pairs = optimizer.compute_gradients(
        total_loss, variables_to_train or tf.trainable_variables(),
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )  # fmt: skip
    if gradient_multipliers:
        pairs = multiply_gradients(pairs, gradient_multipliers)
    if transform_grads_fn is not None:
        pairs = transform_grads_fn(pairs)
    if clip_gradient_norm > 0:
        pairs = clip_gradient_norms(pairs, clip_gradient_norm)
    if summarize_gradients:
        for g, v in pairs:
            tf.summary.histogram(f"gradients/{v.op.name}", g)
    done = optimizer.apply_gradients(pairs, global_step=step)
    if check_numerics:
        total_loss = check.check_numerics(total_loss, "LossTensor is inf or nan")
    with tf.control_dependencies([done]):
        found = tf.identity(total_loss)
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, found)
    return found


def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Any) -> Any:
    """One step: the loss, and whether to stop.

    Args:
        sess: a session.
        train_op: what `create_train_op` gives.
        global_step: a step counter.
        train_step_kwargs: a dict with `logging_every`, `number_of_steps`.
    """
    start = time.time()
    loss, step = sess.run([train_op, global_step])
    every, last = (train_step_kwargs.get(k) for k in ("logging_every", "number_of_steps"))
    if every and step % every == 0:
        spent = time.time() - start
        tf.logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, spent)
    return loss, bool(last is not None and step >= last)


def train(
    train_op: Any, logdir: str | None, train_step_fn: Callable[..., Any] = train_step,
    log_every_n_steps: int = 1, graph: Any = None, master: str = "", is_chief: bool = True,
    global_step: Any = None, number_of_steps: int | None = None, init_op: Any = None,
    init_feed_dict: Any = None, local_init_op: Any = None, init_fn: Any = None,
    summary_op: Any = None, save_summaries_secs: int = 600, saver: Any = None,
    save_interval_secs: int = 600, session_config: Any = None,
) -> Any:  # fmt: skip
    """Runs a training operation until its last step; the last loss.

    Args:
        train_op: what `create_train_op` gives.
        logdir: the folder of checkpoints and events, or `None`.
        train_step_fn: a function like `train_step`.
        log_every_n_steps: how often to log the loss.
        graph, master, is_chief, init_op, init_feed_dict, local_init_op, init_fn, summary_op,
            save_summaries_secs, saver: as in `tf.train.Supervisor`.
        global_step: a step counter; the graph's by default.
        number_of_steps: the last step; `None` goes on until the data ends.
        save_interval_secs: seconds between checkpoints.
        session_config: of the session.
    """
    with (graph or tf.get_default_graph()).as_default():
        step = tf.train.get_or_create_global_step() if global_step is None else global_step
        given = {"init_op": init_op, "local_init_op": local_init_op, "saver": saver,
                 "init_feed_dict": init_feed_dict, "init_fn": init_fn}  # fmt: skip
        supervisor = tf.train.Supervisor(
            logdir=logdir, is_chief=is_chief, global_step=step, save_model_secs=save_interval_secs,
            save_summaries_secs=save_summaries_secs,
            **{k: v for k, v in given.items() if v is not None},
            **({} if summary_op is None else {"summary_op": summary_op}),
        )  # fmt: skip
        options = {"logging_every": log_every_n_steps, "number_of_steps": number_of_steps}
        loss: Any = None
        with supervisor.managed_session(master, config=session_config) as session:
            supervisor.start_queue_runners(session)
            while not supervisor.should_stop():
                try:
                    loss, stop = train_step_fn(session, train_op, step, options)
                except tf.errors.OutOfRangeError:
                    stop = True
                if stop:
                    supervisor.request_stop()
            if logdir and is_chief:
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
        return loss
