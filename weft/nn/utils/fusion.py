"""Fusion of batch norm, in evaluation, into the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from weft.documentation import arguments_of
from weft.eager.functions.creation.constructor import ones_like, zeros_like
from weft.eager.functions.elementwise.declared import rsqrt
from weft.errors import ShapeError, StateError
from weft.nn.module.module import Module
from weft.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip

M = TypeVar("M", bound=Module)


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A convolution equal to `bn(conv(x))`, both in evaluation mode.

    Args:
        conv: the convolution.
        bn: the batch norm after it.
        transpose: whether the convolution is a transposed one.

    Raises:
        StateError: one is in training mode, or batch norm has no running statistics.

    >>> import weft as wf
    >>> from weft import nn
    >>> conv, bn = nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(3).eval()
    >>> x = wf.randn(4, 2, 5)
    >>> bool(wf.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6))
    True
    """
    fused = copy.deepcopy(conv)
    weight, bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *_statistics(conv, bn), transpose=transpose
    )
    fused.weight, fused.bias = weight, bias
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution with its batch norm fused in.

    Args:
        conv_w: the convolution's weight.
        conv_b: its bias, or `None`.
        bn_rm: batch norm's running mean.
        bn_rv: batch norm's running variance.
        bn_eps: batch norm's `eps`.
        bn_w: batch norm's weight, or `None`.
        bn_b: batch norm's bias, or `None`.
        transpose: whether the convolution is a transposed one.
    """
    ends = (1,) * (conv_w.ndim - 2)
    shape = (1, -1, *ends) if transpose else (-1, 1, *ends)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


@arguments_of(fuse_conv_bn_eval)
def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A linear layer equal to `bn(linear(x))`, both in evaluation mode.

    Args:
        linear: the linear layer.

    Raises:
        StateError: one is in training mode, or batch norm has no running statistics.
        ShapeError: batch norm has neither one feature nor as many as the layer's output.
    """
    fused = copy.deepcopy(linear)
    if bn.num_features not in (1, linear.out_features):
        raise ShapeError.here(
            f"fuse_linear_bn_eval: expected batch norm of 1 or {linear.out_features} features, got "
            f"{bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, *_statistics(linear, bn)
    )
    return fused


@arguments_of(fuse_conv_bn_weights)
def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer with its batch norm fused in.

    Args:
        linear_w: the layer's weight.
        linear_b: its bias, or `None`.
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _statistics(layer: Module, bn: Module) -> tuple[Any, ...]:
    if layer.training or bn.training:
        raise StateError.here(
            f"fusion: {type(layer).__name__} and {type(bn).__name__} are fused in evaluation; call "
            f"eval() on both"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise StateError.here(
            f"fusion: expected running statistics, {type(bn).__name__} has none; make it with "
            f"track_running_stats=True"
        )
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias


def _fused(
    weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: Any, offset: Any, shape: Any
) -> tuple[Parameter, Parameter]:
    before = zeros_like(mean) if bias is None else bias
    factor = (ones_like(mean) if scale is None else scale) * rsqrt(var + eps)
    after = zeros_like(mean) if offset is None else offset
    fused_weight = (weight * factor.reshape(shape)).to(weight.dtype)
    fused_bias = ((before - mean) * factor + after).to(weight.dtype if bias is None else bias.dtype)
    trained = weight.requires_grad, before.requires_grad
    return Parameter(fused_weight.detach(), trained[0]), Parameter(fused_bias.detach(), trained[1])
