"""Normalization layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar
from typing import Any, ClassVar

from weft.eager.functions.creation.constructor import empty, ones, tensor, zeros
from weft.eager.tensor.argument import dims_of
from weft.errors import ShapeError
from weft.ir.dtype import int64
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional import normalization as F
from weft.nn.layer.base import Layer, layer, options
from weft.nn.parameter import Parameter
from weft.ops.warning import warn

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm",
]  # fmt: skip


class _Affine(Layer):
    """A weight and an offset, which start as 1 and 0.

    Args:
        eps: is added to the variance, so that no division by 0 occurs.
        bias: whether there is an offset besides the weight.
    """

    def _make(self, shape: Any, kind: dict[str, Any], **there: bool) -> None:
        vars(self).pop("bias", None)  # the option; from now on the parameter
        for name, made in there.items():
            self.register_parameter(name, Parameter(empty(shape, **kind)) if made else None)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
            parameter = self._parameters.get(name)
            if parameter is not None:
                fill(parameter)


@options
class _Statistics(_Affine):
    """Running statistics and affine parameters per channel; shared by batch and instance norm.

    Args:
        num_features: the number of channels.
        momentum: the weight of a batch's statistics in the running ones; `None` averages over all
            batches.
        affine: whether there are a weight and an offset for each channel.
        track_running_stats: keep running statistics, which are used in evaluation.
    """

    num_features: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = True
    track_running_stats: bool = True
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    bias: Any = True
    _version = 2  # version 2 added num_batches_tracked
    _shown = "num_features, eps=, momentum=, affine=, bias=, track_running_stats="
    ranks: ClassVar[tuple[int, ...]]

    def __post_init__(self, device: Any, dtype: Any) -> None:
        size, tracked = self.num_features, self.track_running_stats
        kind = {"dtype": dtype, "device": device}
        self._make(size, kind, weight=self.affine, bias=self.affine and self.bias)
        self.register_buffer("running_mean", zeros(size, **kind) if tracked else None)
        self.register_buffer("running_var", ones(size, **kind) if tracked else None)
        count = tensor(0, dtype=int64) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset to mean 0, variance 1, no batches seen."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Reset to weight 1, bias 0, and initial statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Any) -> None:
        shape = dims_of(input)
        if len(shape) not in self.ranks:
            ranks = " or ".join(map(str, self.ranks))
            raise ShapeError.here(
                f"{type(self).__name__}: expected an input of rank {ranks}, got {show(shape)}"
            )

    def _renew_state(self, state_dict: Any, prefix: str, local_metadata: Mapping[str, Any]) -> None:
        if local_metadata.get("version", 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)


class _BatchNorm(_Statistics):
    def forward(self, input: Any) -> Any:
        """The input's shape; running statistics are updated in training."""
        self._check_input_dim(input)
        by_batch = self.training or self.running_mean is None
        kept = self.track_running_stats or not self.training
        mean, var = (self.running_mean, self.running_var) if kept else (None, None)
        count = self.num_batches_tracked if self.training and kept else None
        return F.batch_norm(
            input, mean, var, self.weight, self.bias, by_batch, self.momentum, self.eps, count
        )


class BatchNorm1d(_BatchNorm):
    """Batch norm of (N, C) or (N, C, L): channels get mean 0 and variance 1, then affine."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of (N, C, H, W): channels get mean 0 and variance 1, then affine."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of (N, C, D, H, W): channels get mean 0 and variance 1, then affine."""

    ranks = (5,)


@options
class _InstanceNorm(_Statistics):
    affine: bool = False
    track_running_stats: bool = False

    def forward(self, input: Any) -> Any:
        """The input's shape; N is optional."""
        self._check_input_dim(input)
        shape = dims_of(input)
        single = len(shape) == self.ranks[0]
        if not self.affine and shape[0 if single else 1] != self.num_features:
            warn(
                f"{type(self).__name__}: {self.num_features} num_features are of no influence "
                f"without affine, the input {show(shape)} has others{at_user_line()}",
            )
        y = F.instance_norm(
            input[None] if single else input, self.running_mean, self.running_var, self.weight,
            self.bias, self.training or not self.track_running_stats, self.momentum or 0.0,
            self.eps,
        )  # fmt: skip
        return y[0] if single else y


class InstanceNorm1d(_InstanceNorm):
    """Instance norm: each channel of each example of (N, C, L) gets mean 0 and variance 1."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm: each channel of each example of (N, C, H, W) gets mean 0 and variance 1."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm: each channel of each example of (N, C, D, H, W) gets mean 0, variance 1."""

    ranks = (4, 5)


class _LastNorm(_Affine):
    """Norms of the last dimensions.

    Args:
        normalized_shape: their sizes, or the size of the last one.
        elementwise_affine: whether there are a weight and an offset for each element.
    """

    normalized_shape: Any
    elementwise_affine: bool
    _shown = "normalized_shape, eps=, elementwise_affine=, bias="

    def _made(self, kind: dict[str, Any], **affine: bool) -> None:
        shape = self.normalized_shape
        self.normalized_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self._make(self.normalized_shape, kind, **affine)
        self.reset_parameters()


@options
class LayerNorm(_LastNorm):
    """Layer norm: the last dimensions get mean 0 and variance 1, then affine."""

    normalized_shape: Any
    eps: float = 1e-5
    elementwise_affine: bool = True
    bias: Any = True
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None

    def __post_init__(self, device: Any, dtype: Any) -> None:
        there = self.elementwise_affine
        self._made({"dtype": dtype, "device": device}, weight=there, bias=there and self.bias)

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


@options
class RMSNorm(_LastNorm):
    """The last dimensions divided by their root mean square, times a weight.

    Args:
        eps: is added to the mean square; by default the smallest step from 1 of the element type.
        elementwise_affine: whether there is a weight for each element.
    """

    normalized_shape: Any
    eps: float | None = None
    elementwise_affine: bool = True
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = "normalized_shape, eps=, elementwise_affine="

    def __post_init__(self, device: Any, dtype: Any) -> None:
        self._made({"dtype": dtype, "device": device}, weight=self.elementwise_affine)

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


@options
class GroupNorm(_Affine):
    """Group norm: groups of channels of (N, C, ...) get mean 0 and variance 1, then affine.

    Args:
        num_groups: the number of groups, which divides that of the channels.
        num_channels: the number of channels.
        affine: whether there are a weight and an offset for each channel.
    """

    num_groups: int
    num_channels: int
    eps: float = 1e-5
    affine: bool = True
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    bias: Any = True
    _shown = "num_groups, num_channels, eps=, affine=, bias="

    def __post_init__(self, device: Any, dtype: Any) -> None:
        groups, channels, affine = self.num_groups, self.num_channels, self.affine
        if groups < 1 or channels % groups:
            raise ShapeError.here(
                f"GroupNorm: expected a number of groups that divides {channels} channels, "
                f"got {groups}"
            )
        kind = {"dtype": dtype, "device": device}
        self._make(channels, kind, weight=affine, bias=affine and self.bias)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


@layer(F.local_response_norm)
class LocalResponseNorm(Layer):
    """`x / (k + alpha * mean of squares over size neighboring channels) ** beta`."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    _shown = "size, alpha=, beta=, k="
