"""Normalization layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft.eager.functions.creation.constructor import empty, ones, tensor, zeros
from weft.eager.tensor.argument import dims_of
from weft.errors import ShapeError
from weft.ir.dtype import int64
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional import normalization as F
from weft.nn.layer.base import Layer, layer
from weft.nn.module.module import Module
from weft.nn.parameter import Parameter
from weft.ops.warning import warn


class _Statistics(Module):
    """Running statistics and affine parameters per channel; shared by batch and instance norm."""

    _version = 2  # version 2 added num_batches_tracked
    ranks: ClassVar[tuple[int, ...]]

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool,
        track_running_stats: bool, device: Any, dtype: Any, bias: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"dtype": dtype, "device": device}
        weight = Parameter(empty(num_features, **options)) if affine else None
        self.register_parameter("weight", weight)
        offset = Parameter(empty(num_features, **options)) if affine and bias else None
        self.register_parameter("bias", offset)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **options) if tracked else None)
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
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check(self, input: Any) -> None:
        shape = dims_of(input)
        if len(shape) not in self.ranks:
            ranks = " or ".join(map(str, self.ranks))
            raise ShapeError(
                f"{type(self).__name__}: expected an input of rank {ranks}, got {show(shape)}"
                f"{at_user_line()}"
            )

    def _renew_state(self, state_dict: Any, prefix: str, local_metadata: Mapping[str, Any]) -> None:
        if local_metadata.get("version", 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Statistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Any) -> Any:
        """The input's shape; running statistics are updated in training."""
        self._check(input)
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


class _InstanceNorm(_Statistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Any) -> Any:
        """The input's shape; N is optional."""
        self._check(input)
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


class LayerNorm(Module):
    """Layer norm: the last dimensions get mean 0 and variance 1, then affine."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape, options = self.normalized_shape, {"dtype": dtype, "device": device}
        weight = Parameter(empty(shape, **options)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        offset = Parameter(empty(shape, **options)) if elementwise_affine and bias else None
        self.register_parameter("bias", offset)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last dimensions divided by their root mean square, times a weight."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = empty(self.normalized_shape, dtype=dtype, device=device)
        self.register_parameter("weight", Parameter(weight) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Group norm: groups of channels of (N, C, ...) get mean 0 and variance 1, then affine."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(
                f"GroupNorm: expected a number of groups that divides {num_channels} channels, "
                f"got {num_groups}{at_user_line()}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        options = {"dtype": dtype, "device": device}
        weight = Parameter(empty(num_channels, **options)) if affine else None
        self.register_parameter("weight", weight)
        offset = Parameter(empty(num_channels, **options)) if affine and bias else None
        self.register_parameter("bias", offset)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """The input's shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


@layer(F.local_response_norm)
class LocalResponseNorm(Layer):
    """`x / (k + alpha * mean of squares over size neighboring channels) ** beta`."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    _shown = "size, alpha=, beta=, k="
