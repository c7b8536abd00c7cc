"""Batch normalization."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.option import ANY, only
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing import slicing
from weft.tf1.layers.dense import zeros_unless
from weft.tf1.nn import normalization
from weft.tf1.shape import arrangement
from weft.tf1.variable import initializer as init_ops
from weft.tf1.variable.variable import assign
from weft.tf1.variable.variable_scope import get_variable, variable_scope


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    **others: Any,
) -> Tensor:
    """Batch normalization; the updates of its moving averages are in `GraphKeys.UPDATE_OPS`.

    `training` is a Python or a tensor boolean: use the batch's statistics, or the moving averages.

    Raises:
        ArgumentError: for `renorm`, `virtual_batch_size` or `adjustment`.
    """
    only(
        "batch_normalization", others, fused=ANY, renorm=False, renorm_clipping=ANY,
        renorm_momentum=ANY, virtual_batch_size=None, adjustment=None,
    )  # fmt: skip
    x = convert_to_tensor(inputs)
    rank = len(x.shape)
    channel = axis % rank
    size = x.shape[channel].value
    if size is None:
        raise fail(ShapeError, f"batch_normalization: expected known channels, got shape {x.shape}")
    ones = init_ops.ones_initializer()
    with variable_scope(name, default_name="batch_normalization", values=[x], reuse=reuse):
        made: dict[str, Any] = {}
        if scale:
            made["gamma"] = get_variable("gamma", [size], x.dtype, gamma_initializer or ones,
                                      regularizer=gamma_regularizer, constraint=gamma_constraint,
                                      trainable=trainable)  # fmt: skip
        if center:
            made["beta"] = get_variable("beta", [size], x.dtype, zeros_unless(beta_initializer),
                                     regularizer=beta_regularizer, constraint=beta_constraint,
                                     trainable=trainable)  # fmt: skip
        mean = get_variable("moving_mean", [size], x.dtype, zeros_unless(moving_mean_initializer),
                         trainable=False)  # fmt: skip
        variance = get_variable("moving_variance", [size], x.dtype,
                             moving_variance_initializer or ones, trainable=False)  # fmt: skip
        axes = [i for i in range(rank) if i != channel]
        used = _statistics(x, axes, mean, variance, momentum, training)
        shape = [size if i == channel else 1 for i in range(rank)]
        mu, sigma, beta, gamma = (
            None if v is None else arrangement.reshape(v, shape)
            for v in (*used, made.get("beta"), made.get("gamma"))
        )
        return normalization.batch_normalization(x, mu, sigma, beta, gamma, epsilon)


def _statistics(
    x: Tensor, axes: list[int], mean: Any, variance: Any, momentum: float, training: Any
) -> tuple[Any, Any]:
    known = static_value(training)
    if known is not None and not bool(known):
        return mean.value(), variance.value()
    batch = normalization.moments(x, axes)
    flag = None if known is not None else convert_to_tensor(training)
    used: list[Any] = []
    for moving, now in zip((mean, variance), batch, strict=True):
        old = moving.value()
        new = old * momentum + now * (1.0 - momentum)
        new = new if flag is None else slicing.where(flag, new, old)
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, assign(moving, new).op)
        used.append(now if flag is None else slicing.where(flag, now, old))
    return used[0], used[1]
