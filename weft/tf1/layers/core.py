"""Fully connected layers, flatten and dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.tf1.control.dependency import identity
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing import slicing
from weft.tf1.layers.dense import Dense
from weft.tf1.nn import normalization
from weft.tf1.shape import arrangement
from weft.tf1.variable.variable_scope import variable_scope

Activation = Callable[..., Any] | None


def dense(
    inputs: Any,
    units: int,
    activation: Activation = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """activation(inputs @ kernel + bias), over the last axis."""
    return Dense(
        units, activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint, trainable,
        _reuse=reuse, _scope=name,
    )(inputs)  # fmt: skip


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """All axes but the first flattened into one."""
    x = convert_to_tensor(inputs)
    with variable_scope(name, default_name="flatten", values=[x]):
        if data_format == "channels_first" and len(x.shape) > 2:
            order = [0, *range(2, len(x.shape)), 1]
            x = arrangement.transpose(x, order)
        rest = x.shape[1:].num_elements()
        return arrangement.reshape(x, [-1 if rest is not None else arrangement.shape(x)[0],
                                     -1 if rest is None else rest])  # fmt: skip


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Dropout while `training` (a Python or a tensor boolean), else the input."""
    x = convert_to_tensor(inputs)
    with variable_scope(name, default_name="dropout", values=[x]):
        known = static_value(training)
        if known is not None:
            if not bool(known):
                return identity(x)
            return normalization.dropout(x, rate=rate, noise_shape=noise_shape, seed=seed)
        dropped = normalization.dropout(x, rate=rate, noise_shape=noise_shape, seed=seed)
        return slicing.where(convert_to_tensor(training), dropped, x)
