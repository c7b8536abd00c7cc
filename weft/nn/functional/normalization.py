"""Batch, layer, group, instance and RMS normalization."""

from __future__ import annotations

import math
from typing import Any

from weft.documentation import arguments_of
from weft.eager.functions.creation.constructor import ones
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.ops.layer import channel_normalization as formulas

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm",
]  # fmt: skip

# batch norm


_batch_norm = recorded(formulas.batch_norm)


_moved = recorded(formulas.moved, differentiable=False)


_batch_norm_eval = recorded(formulas.batch_norm_eval)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float | None = 0.1, eps: float = 1e-5, count: Any = None,
) -> Any:  # fmt: skip
    """Channels, dimension 1, normalized to mean 0 and variance 1, times `weight` plus `bias`.

    Args:
        input: (N, C, ...).
        running_mean: updated in place in training, like `running_var`; otherwise the statistics to
            normalize by. May be `None` in training.
        running_var: like `running_mean`.
        weight: a factor for each channel.
        bias: an offset for each channel.
        training: normalize by the input's own statistics.
        momentum: the weight of the new statistics; `None` averages over all batches so far, which
            `count` counts.
        eps: is added to the variance, so that no division by 0 occurs.
        count: a tensor that counts batches, or `None`.

    Raises:
        ShapeError: the shapes do not fit.
        ArgumentError: running statistics are missing in evaluation, or `eps` is not positive.

    Source: Ioffe and Szegedy, "Batch Normalization" (2015).
    """
    _check_channels("batch_norm", dims_of(input), weight, running_mean)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError.here(
                "batch_norm: expected running_mean and running_var outside of training"
            )
        xs = (input, weight, bias, running_mean, running_var)
        return _batch_norm_eval(*xs, eps=float(eps))
    _check_many("batch_norm", dims_of(input))
    if eps <= 0:
        raise ArgumentError.here(f"batch_norm: expected eps > 0 in training, got {eps}")
    if 0 in dims_of(input):  # no statistics; the running ones stay as they are
        if count is not None:
            count.add_(1)
        any_will_do = ones(dims_of(input)[1])
        return _batch_norm_eval(input, weight, bias, any_will_do, any_will_do, eps=float(eps))
    y, *statistics = _batch_norm(input, weight, bias, eps=float(eps))
    move_statistics((running_mean, running_var, count), statistics, momentum)
    return y


def move_statistics(buffers: tuple[Any, Any, Any], statistics: Any, momentum: float | None) -> None:
    """Update running statistics, if there are any."""
    if buffers[0] is None or buffers[1] is None:
        return
    static = {"momentum": None if momentum is None else float(momentum)}
    moved = _moved.record((*buffers, *statistics), static)
    Handle.replace_all([b for b in buffers if b is not None], moved)


def _check_channels(name: str, shape: tuple[int, ...], *weights: Any) -> None:
    if len(shape) < 2:
        raise ShapeError.here(f"{name}: expected an input of rank 2 or more, got {show(shape)}")
    for x in weights:
        if x is not None and dims_of(x) != (shape[1],):
            raise ShapeError.here(
                f"{name}: expected {dims_of(x)[0]} channels (dimension 1), got an input "
                f"{show(shape)}"
            )


def _check_many(name: str, shape: tuple[int, ...]) -> None:
    if math.prod(shape) == shape[1]:
        raise ShapeError.here(
            f"{name}: expected more than 1 value per channel when training, got an input "
            f"{show(shape)}"
        )


# layer norm, RMS norm


_layer_norm = recorded(formulas.layer_norm)


def _row_shape(name: str, input: Any, normalized_shape: Any, *weights: Any) -> int:
    """The number of normalized last dimensions."""
    shape = dims_of(input)
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or shape[-len(sizes) :] != sizes:
        raise ShapeError.here(
            f"{name}: expected an input (..., {', '.join(map(str, sizes))}), got {show(shape)}"
        )
    for x in weights:
        if x is not None and dims_of(x) != sizes:
            raise ShapeError.here(f"{name}: expected weights {show(sizes)}, got {show(dims_of(x))}")
    return len(sizes)


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """The last dimensions normalized to mean 0 and variance 1, times `weight` plus `bias`.

    Args:
        input: (..., normalized_shape...).
        normalized_shape: the sizes of the last dimensions, or the size of the last one.
        weight: factors, of `normalized_shape`.
        bias: offsets, of `normalized_shape`.
        eps: is added to the variance, so that no division by 0 occurs.

    Source: Ba et al., "Layer Normalization" (2016).
    """
    count = _row_shape("layer_norm", input, normalized_shape, weight, bias)
    return _layer_norm(input, weight, bias, count=count, eps=float(eps))


_rms_norm = recorded(formulas.rms_norm)


@arguments_of(layer_norm)
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Any:
    """The last dimensions divided by their root mean square, times `weight`.

    Args:
        eps: is added to the mean square; by default the smallest step from 1 of the element type.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019).
    """
    count = _row_shape("rms_norm", input, normalized_shape, weight)
    return _rms_norm(input, weight, count=count, eps=eps)


# group norm, instance norm


_group_norm = recorded(formulas.group_norm)


@arguments_of(batch_norm)
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Groups of channels of (N, C, ...) normalized to mean 0 and variance 1, then affine.

    Args:
        num_groups: the number of groups, which divides that of the channels.

    Source: Wu and He, "Group Normalization" (2018).
    """
    shape = dims_of(input)
    _check_channels("group_norm", shape, weight, bias)
    if num_groups < 1 or shape[1] % num_groups:
        raise ShapeError.here(
            f"group_norm: expected a number of groups that divides {shape[1]} channels, got "
            f"{num_groups}"
        )
    if math.prod((shape[0], shape[1] // num_groups, *shape[2:])) == 1:
        raise ShapeError.here(
            f"group_norm: expected several values in each group, got one, of an input {show(shape)}"
        )
    return _group_norm(input, weight, bias, groups=int(num_groups), eps=float(eps))


_instance_norm = recorded(formulas.instance_norm)


@arguments_of(batch_norm)
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each example of (N, C, ...) normalized to mean 0 and variance 1.

    Args:
        running_mean: updated in place with `use_input_stats`, like `running_var`; otherwise the
            statistics to normalize by.
        use_input_stats: normalize by its own statistics and update the running ones, if given;
            otherwise normalize by the running ones.
        momentum: the weight of the new statistics.

    Source: Ulyanov et al., "Instance Normalization" (2016).
    """
    shape = dims_of(input)
    _check_channels("instance_norm", shape, weight, running_mean)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if math.prod(shape[2:]) == 1:
        raise ShapeError.here(
            f"instance_norm: expected more than 1 spatial element when training, got {show(shape)}"
        )
    if running_mean is None or running_var is None:
        return _instance_norm(input, weight, bias, eps=float(eps), statistics=False)
    y, *statistics = _instance_norm(input, weight, bias, eps=float(eps), statistics=True)
    move_statistics((running_mean, running_var, None), statistics, momentum)
    return y


_local_response_norm = recorded(formulas.local_response_norm)


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """`x / (k + alpha * mean of squares over size neighboring channels) ** beta`.

    Args:
        input: (N, C, ...), with at least 3 dimensions.
        size: the number of channels.
        alpha: the factor of the mean.
        beta: the exponent.
        k: the constant.

    Source: Krizhevsky et al., "ImageNet classification" (2012).
    """
    if len(dims_of(input)) < 3:
        raise ShapeError.here(
            f"local_response_norm: expected an input of rank 3 or more, got {show(dims_of(input))}"
        )
    return _local_response_norm(
        input, axis=1, before=int(size) // 2, after=(int(size) - 1) // 2,
        alpha=float(alpha) / int(size), beta=float(beta), k=float(k),
    )  # fmt: skip
