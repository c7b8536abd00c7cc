"""`optimize_loss`: a training operation from an optimizer's name or class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.contrib.learning import multiply_gradients
from weft.tf1.framework.graph import fail

__all__ = ["OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "optimize_loss", "summarize_activation",
           "summarize_activations", "summarize_collection", "summarize_tensor",
           "summarize_tensors"]  # fmt: skip

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    "Adagrad": tf.train.AdagradOptimizer, "Adam": tf.train.AdamOptimizer,
    "Ftrl": tf.train.FtrlOptimizer,
    "Momentum": lambda rate: tf.train.MomentumOptimizer(rate, momentum=0.9),
    "RMSProp": tf.train.RMSPropOptimizer, "SGD": tf.train.GradientDescentOptimizer,
}  # fmt: skip
OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm",
                       "global_gradient_norm"]  # fmt: skip


def optimize_loss(
    loss: Any, global_step: Any, learning_rate: Any, optimizer: Any,
    gradient_noise_scale: float | None = None, gradient_multipliers: Any = None,
    clip_gradients: Any = None, learning_rate_decay_fn: Any = None, update_ops: Any = None,
    variables: Sequence[Any] | None = None, name: str | None = None,
    summaries: Sequence[str] | None = None, colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:  # fmt: skip
    """The loss, which when it is computed has taken a step.

    Args:
        loss: a scalar.
        global_step: a step counter, or `None` for the graph's.
        learning_rate: a number, a tensor, or `None` if the optimizer has it.
        optimizer: a name of `OPTIMIZER_CLS_NAMES`, a class, an optimizer, or a function of the
            learning rate.
        gradient_noise_scale: the deviation of noise that is added to gradients.
        gradient_multipliers: a dict from variables or their names to factors.
        clip_gradients: the greatest norm of all gradients together, or a function of the list of
            (gradient, variable).
        learning_rate_decay_fn: a function of the learning rate and the step.
        update_ops: what runs before; by default the operations in `UPDATE_OPS`.
        variables: which are trained; all by default.
        name: of the variable scope.
        summaries: which summaries to write.
        colocate_gradients_with_ops: accepted.
        increment_global_step: whether the step counts.

    Raises:
        ArgumentError: the optimizer is not known.
    """
    with tf.variable_scope(name, "OptimizeLoss", [loss, global_step]):
        step = tf.train.get_global_step() if global_step is None else global_step
        before = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops
        if before:
            with tf.control_dependencies(list(before)):
                loss = tf.identity(loss)
        rate = learning_rate
        if rate is not None and not tf.is_tensor(rate):
            rate = tf.get_variable("learning_rate", [], trainable=False,
                                   initializer=tf.constant_initializer(float(rate)))  # fmt: skip
        if learning_rate_decay_fn is not None:
            rate = learning_rate_decay_fn(rate, step)
        shown = (
            ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else summaries
        )
        if rate is not None and "learning_rate" in shown:
            tf.summary.scalar("learning_rate", rate)
        opt = _made(optimizer, rate)
        pairs = opt.compute_gradients(
            loss, variables or tf.trainable_variables(),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )  # fmt: skip
        pairs = _changed(pairs, gradient_noise_scale, gradient_multipliers, clip_gradients)
        _summarize(pairs, loss, shown)
        done = opt.apply_gradients(
            pairs, global_step=step if increment_global_step else None, name="train"
        )
        with tf.control_dependencies([done]):
            return tf.identity(loss, name="train_op")


def _changed(pairs: Any, noise: float | None, multipliers: Any, clip: Any) -> Any:
    """Gradients with noise, times factors, clipped."""
    if noise is not None:
        pairs = [(g if g is None else g + noise * tf.truncated_normal(v.shape), v)
                 for g, v in pairs]  # fmt: skip
    if multipliers is not None:
        pairs = multiply_gradients(pairs, multipliers)
    if callable(clip):
        return clip(pairs)
    if clip is None:
        return pairs
    grads, variables = zip(*pairs, strict=True)
    clipped, _ = tf.clip_by_global_norm(grads, clip)
    return list(zip(clipped, variables, strict=True))


def _summarize(pairs: Any, loss: Any, shown: Sequence[str]) -> None:
    if "loss" in shown:
        tf.summary.scalar("loss", loss)
    if "gradients" in shown:
        for g, v in pairs:
            if g is not None:
                tf.summary.histogram(f"gradients/{v.op.name}", g)


def _made(optimizer: Any, rate: Any) -> Any:
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZER_CLS_NAMES:
            names = ", ".join(OPTIMIZER_CLS_NAMES)
            text = f"optimize_loss: expected an optimizer of {names}, got {optimizer!r}"
            raise fail(ArgumentError, text)
        return OPTIMIZER_CLS_NAMES[optimizer](rate)
    if isinstance(optimizer, tf.train.Optimizer):
        return optimizer
    if not callable(optimizer):
        text = f"optimize_loss: expected an optimizer, its name or its class, got {optimizer!r}"
        raise fail(ArgumentError, text)
    return optimizer() if rate is None else optimizer(rate)


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A summary of a tensor: a scalar, or a histogram."""
    name = tag or tensor.op.name
    if tensor.shape.ndims == 0:
        return tf.summary.scalar(name, tensor)
    return tf.summary.histogram(name, tensor)


def summarize_activation(op: Any) -> Any:
    """A histogram of a layer's outputs, and for ReLU the fraction of zeros."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        tf.summary.scalar(f"{op.op.name}/zeros", tf.nn.zero_fraction(op))
    return tf.summary.histogram(f"{op.op.name}/activation", op)


def summarize_tensors(tensors: Sequence[Any], summarizer: Any = summarize_tensor) -> list[Any]:
    """A summary of each tensor."""
    return [summarizer(t) for t in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Any = summarize_tensor
) -> list[Any]:
    """A summary of each tensor of a collection."""
    return summarize_tensors(tf.get_collection(collection, name_filter), summarizer)


def summarize_activations(
    name_filter: str | None = None, summarizer: Any = summarize_activation
) -> list[Any]:
    """A summary of each tensor in `ACTIVATIONS`."""
    return summarize_collection(tf.GraphKeys.ACTIVATIONS, name_filter, summarizer)
