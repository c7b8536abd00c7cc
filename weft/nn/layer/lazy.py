"""Layers that take the size of their input from the first one that they get."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Concatenate, ParamSpec

from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.argument import dims_of
from weft.errors import StateError
from weft.nn.layer.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from weft.nn.layer.linear import Linear
from weft.nn.layer.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from weft.nn.module.module import Module
from weft.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip

P = ParamSpec("P")


class LazyModuleMixin(Module):
    """A module with parameters or buffers whose shapes are inferred from its first input.

    A subclass sets `cls_to_become`, the module's class after initialization (or leaves it `None`),
    and defines `initialize_parameters`, which gets the first call's arguments.

    >>> import weft as wf
    >>> class Scale(LazyModuleMixin):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = wf.nn.UninitializedParameter()
    ...     def initialize_parameters(self, input):
    ...         self.factor.materialize(input.shape[-1])
    ...         wf.nn.init.ones_(self.factor)
    ...     def forward(self, input):
    ...         return input * self.factor
    >>> Scale()(wf.ones(2)).tolist()
    [1.0, 1.0]
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters shapes and values; defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__}: initialize_parameters is not defined")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module itself has no shape yet."""
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))


def _initialize(module: LazyModuleMixin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A forward pre-hook: sets shapes and values, then the final class."""
    with no_grad():
        module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise StateError.here(
            f"{type(module).__name__}: initialize_parameters has left parameters uninitialized"
        )
    module._initialize_hook.remove()  # pyright: ignore[reportPrivateUsage]
    del module._initialize_hook  # pyright: ignore[reportPrivateUsage]
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become  # type: ignore[assignment]


def _without_size(
    constructor: Callable[Concatenate[Any, int, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """The constructor of a lazy layer: that of the layer without its first argument, the size.

    Args:
        constructor: the layer's. The decorated one gets all arguments by name.
    """
    signature = inspect.signature(constructor)
    this, _, *options = signature.parameters.values()
    signature = signature.replace(parameters=[this, *options])

    def decorate(function: Callable[..., None]) -> Any:
        @functools.wraps(function)
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            function(**bound.arguments)

        made.__signature__ = signature  # type: ignore[attr-defined]
        return made

    return decorate


class _Lazy(LazyModuleMixin):
    """A layer made for inputs of size 0, whose parameters get their shapes later."""

    size: ClassVar[str]  # the attribute with the unknown input size
    waiting: ClassVar[tuple[str, ...]] = ("weight", "bias")  # whose shapes are not known

    def __init_subclass__(cls, **options: Any) -> None:
        """A lazy layer becomes the layer that is its last base."""
        super().__init_subclass__(**options)
        cls.cls_to_become = cls.__bases__[-1]

    def __init__(self, **options: Any) -> None:
        super().__init__(0, **options)
        for name in self.waiting:
            for entries, uninitialized in (
                (self._parameters, UninitializedParameter),
                (self._buffers, UninitializedBuffer),
            ):
                entry = entries.get(name)
                if entry is not None:
                    entries[name] = uninitialized(dtype=entry.dtype)  # type: ignore[index]

    def reset_parameters(self) -> None:
        """Initialize the parameters, once they have shapes."""
        if getattr(self, self.size):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        """Take the size from the first input."""
        setattr(self, self.size, self._size_of(dims_of(input)))
        if self.has_uninitialized_params():
            for name in self.waiting:
                made = getattr(self, name)
                if is_lazy(made):
                    made.materialize(self._shape(name))
            self.reset_parameters()

    def _size_of(self, dims: tuple[int, ...]) -> int:
        """The size of an input."""
        return dims[-1]

    def _shape(self, name: str) -> tuple[int, ...]:
        """The shape of a parameter or buffer."""
        return (getattr(self, self.size),)


class LazyLinear(_Lazy, Linear):
    """`Linear` that takes `in_features` from its first input.

    >>> import weft as wf
    >>> layer = wf.nn.LazyLinear(2)
    >>> tuple(layer(wf.ones(3, 4)).shape), layer
    ((3, 2), Linear(in_features=4, out_features=2, bias=True))
    """

    size = "in_features"

    @_without_size(Linear.__init__)
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)

    def _shape(self, name: str) -> tuple[int, ...]:
        return (self.out_features, *([self.in_features] if name == "weight" else []))


class _LazyConvolution(_Lazy):
    size = "in_channels"
    spatial: ClassVar[int]

    def _size_of(self, dims: tuple[int, ...]) -> int:
        return dims[-1 - self.spatial]

    def _shape(self, name: str) -> tuple[int, ...]:
        layer: Any = self
        return (
            (*layer._channels(), *layer.kernel_size) if name == "weight" else (layer.out_channels,)
        )


class _LazyConv(_LazyConvolution):
    @_without_size(Conv1d.__init__)
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


class LazyConv1d(_LazyConv, Conv1d):  # type: ignore[misc]
    """`Conv1d` that takes `in_channels` from its first input."""


class LazyConv2d(_LazyConv, Conv2d):  # type: ignore[misc]
    """`Conv2d` that takes `in_channels` from its first input."""


class LazyConv3d(_LazyConv, Conv3d):  # type: ignore[misc]
    """`Conv3d` that takes `in_channels` from its first input."""


class _LazyConvTranspose(_LazyConvolution):
    @_without_size(ConvTranspose1d.__init__)
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):  # type: ignore[misc]
    """`ConvTranspose1d` that takes `in_channels` from its first input."""


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):  # type: ignore[misc]
    """`ConvTranspose2d` that takes `in_channels` from its first input."""


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):  # type: ignore[misc]
    """`ConvTranspose3d` that takes `in_channels` from its first input."""


class _LazyStatistics(_Lazy):
    size = "num_features"
    waiting = ("weight", "bias", "running_mean", "running_var")

    @_without_size(BatchNorm1d.__init__)
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)

    def _size_of(self, dims: tuple[int, ...]) -> int:
        layer: Any = self
        single = isinstance(self, _ONE_OR_MANY) and len(dims) == layer.ranks[0]
        return dims[0 if single else 1]


class LazyBatchNorm1d(_LazyStatistics, BatchNorm1d):
    """`BatchNorm1d` that takes `num_features` from its first input."""


class LazyBatchNorm2d(_LazyStatistics, BatchNorm2d):
    """`BatchNorm2d` that takes `num_features` from its first input."""


class LazyBatchNorm3d(_LazyStatistics, BatchNorm3d):
    """`BatchNorm3d` that takes `num_features` from its first input."""


class LazyInstanceNorm1d(_LazyStatistics, InstanceNorm1d):
    """`InstanceNorm1d` that takes `num_features` from its first input."""


class LazyInstanceNorm2d(_LazyStatistics, InstanceNorm2d):
    """`InstanceNorm2d` that takes `num_features` from its first input."""


class LazyInstanceNorm3d(_LazyStatistics, InstanceNorm3d):
    """`InstanceNorm3d` that takes `num_features` from its first input."""


_ONE_OR_MANY = (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
