"""Layers that take the size of their input from the first one that they see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft.eager.argument import dims_of
from weft.eager.creation import zeros
from weft.eager.hook import RemovableHandle
from weft.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from weft.nn.linear import Linear
from weft.nn.module import Module
from weft.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from weft.nn.parameter import Buffer, Parameter


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet; the same object has one later."""

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(zeros(0, dtype=dtype, device=device), requires_grad)


class UninitializedBuffer(Buffer):
    """A buffer whose shape is not known yet."""

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        super().__init__(zeros(0, dtype=dtype, device=device), persistent=persistent)
        self.requires_grad_(requires_grad)


class _Lazy(Module):
    """A layer made for inputs of size 0, which becomes one of the class behind it."""

    size: ClassVar[str]  # the attribute that says the size of the input
    axis: ClassVar[int]  # of the input
    settled: ClassVar[type[Module]]  # what it becomes
    resized: ClassVar[tuple[str, ...]] = ("weight",)  # whose shapes follow from the size

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(0, *args, **kwargs)
        for name in self.resized:
            parameter = self._parameters.get(name)
            if parameter is not None:
                parameter.__class__ = UninitializedParameter
        self._waiting: list[RemovableHandle] = [
            self.register_forward_pre_hook(_before_forward),
            self.register_load_state_dict_pre_hook(_before_load),
        ]

    def has_uninitialized_params(self) -> bool:
        """Whether the size of the input is still unknown."""
        return not getattr(self, self.size)

    def reset_parameters(self) -> None:
        """The values that training starts from, once there are shapes."""
        if not self.has_uninitialized_params():
            self.settled.reset_parameters(self)  # type: ignore[attr-defined]

    def see(self, args: tuple[Any, ...]) -> None:
        """Take the size from the first input."""
        self._settle(dims_of(args[0])[self.axis])

    def load(self, state: Mapping[str, Any], prefix: str) -> None:
        """Take the size from a state that is to be loaded."""
        weight = state.get(prefix + self.resized[0])
        if weight is not None:
            self._settle(self._size_of(tuple(weight.shape)))

    def _size_of(self, shape: tuple[int, ...]) -> int:
        """The size of the input that goes with a weight."""
        return shape[0]

    def _shape(self) -> tuple[int, ...]:
        """The shape of what is resized."""
        return (getattr(self, self.size),)

    def _settle(self, size: int) -> None:
        for handle in self._waiting:
            handle.remove()
        del self._waiting
        setattr(self, self.size, size)
        for name in self.resized:
            old: Any = self._parameters.get(name)
            old = self._buffers.get(name) if old is None else old
            if old is not None:
                new = zeros(self._shape(), dtype=old.dtype, requires_grad=old.requires_grad)
                old.adopt(new.detach().lazy)
                old.requires_grad_(new.requires_grad)
                old.lasting = True
            if name in self._parameters and old is not None:
                old.__class__ = Parameter
        self.__class__ = self.settled  # type: ignore[assignment]
        self.reset_parameters()


def _before_forward(module: _Lazy, args: tuple[Any, ...]) -> None:
    module.see(args)


def _before_load(module: _Lazy, state: Mapping[str, Any], prefix: str, *_: Any) -> None:
    module.load(state, prefix)


class LazyLinear(_Lazy, Linear):
    """`Linear` that takes `in_features` from its first input.

    >>> import weft as wf
    >>> layer = wf.nn.LazyLinear(2)
    >>> tuple(layer(wf.ones(3, 4)).shape), layer
    ((3, 2), Linear(in_features=4, out_features=2, bias=True))
    """

    size, axis, settled = "in_features", -1, Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(out_features, bias, device, dtype)

    def _size_of(self, shape: tuple[int, ...]) -> int:
        return shape[1]

    def _shape(self) -> tuple[int, ...]:
        return (self.out_features, self.in_features)


class _LazyConvolution(_Lazy):
    size = "in_channels"
    transposed: ClassVar[bool]
    spatial: ClassVar[int]

    def see(self, args: tuple[Any, ...]) -> None:
        """Take the size from the first input."""
        self._settle(dims_of(args[0])[-1 - self.spatial])

    def _size_of(self, shape: tuple[int, ...]) -> int:
        layer: Any = self
        return shape[0] if self.transposed else shape[1] * layer.groups

    def _shape(self) -> tuple[int, ...]:
        layer: Any = self
        return (*layer._channels(), *layer.kernel_size)


class _LazyConv(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip


class LazyConv1d(_LazyConv, Conv1d):  # type: ignore[misc]
    """`Conv1d` that takes `in_channels` from its first input."""

    settled = Conv1d


class LazyConv2d(_LazyConv, Conv2d):  # type: ignore[misc]
    """`Conv2d` that takes `in_channels` from its first input."""

    settled = Conv2d


class LazyConv3d(_LazyConv, Conv3d):  # type: ignore[misc]
    """`Conv3d` that takes `in_channels` from its first input."""

    settled = Conv3d


class _LazyConvTranspose(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
            padding_mode, device, dtype,
        )  # fmt: skip


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):  # type: ignore[misc]
    """`ConvTranspose1d` that takes `in_channels` from its first input."""

    settled = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):  # type: ignore[misc]
    """`ConvTranspose2d` that takes `in_channels` from its first input."""

    settled = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):  # type: ignore[misc]
    """`ConvTranspose3d` that takes `in_channels` from its first input."""

    settled = ConvTranspose3d


class _LazyStatistics(_Lazy):
    size = "num_features"
    resized = ("running_mean", "weight", "bias", "running_var")

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias)

    def see(self, args: tuple[Any, ...]) -> None:
        """Take the size from the first input."""
        layer: Any = self
        shape = dims_of(args[0])
        single = isinstance(self, _ONE_OR_MANY) and len(shape) == layer.ranks[0]
        self._settle(shape[0 if single else 1])

    def load(self, state: Mapping[str, Any], prefix: str) -> None:
        """Take the size from a state that is to be loaded."""
        given = [state[prefix + name] for name in self.resized if prefix + name in state]
        if given:
            self._settle(dims_of(given[0])[0])


class LazyBatchNorm1d(_LazyStatistics, BatchNorm1d):
    """`BatchNorm1d` that takes `num_features` from its first input."""

    settled = BatchNorm1d


class LazyBatchNorm2d(_LazyStatistics, BatchNorm2d):
    """`BatchNorm2d` that takes `num_features` from its first input."""

    settled = BatchNorm2d


class LazyBatchNorm3d(_LazyStatistics, BatchNorm3d):
    """`BatchNorm3d` that takes `num_features` from its first input."""

    settled = BatchNorm3d


class LazyInstanceNorm1d(_LazyStatistics, InstanceNorm1d):
    """`InstanceNorm1d` that takes `num_features` from its first input."""

    settled = InstanceNorm1d


class LazyInstanceNorm2d(_LazyStatistics, InstanceNorm2d):
    """`InstanceNorm2d` that takes `num_features` from its first input."""

    settled = InstanceNorm2d


class LazyInstanceNorm3d(_LazyStatistics, InstanceNorm3d):
    """`InstanceNorm3d` that takes `num_features` from its first input."""

    settled = InstanceNorm3d


_ONE_OR_MANY = (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
