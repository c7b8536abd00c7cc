"""Tensors that belong to a module: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from weft.eager.functions.creation.constructor import empty
from weft.eager.functions.shape.reshape import hand_over
from weft.eager.record.call.placed_type import device_of, placed
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.mode import no_grad
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import cast, lazy_of
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.conversion import copied
from weft.eager.tensor.size import Size
from weft.eager.tensor.tensor import Tensor
from weft.errors import UnknownShapeError
from weft.ir.dtype import DType
from weft.ir.node import TensorType

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


def own(data: Any) -> Lazy:
    """The value for a new tensor: its own copy, so that a change of one tensor changes no other."""
    return copied(data.lazy) if isinstance(data, Handle) else lazy_of(data)


def begin(tensor: Handle, data: Any) -> None:
    """Give a new tensor its value; it shares the memory of the given tensor if possible."""
    if isinstance(data, Handle) and not (data.shown.tracked or data.window or trace.now.depth):
        hand_over(data, tensor)
        return
    tensor.adopt(own(np.empty(0, np.float32) if data is None else data))
    if isinstance(data, np.ndarray):
        tensor.lend()


class Parameter(Tensor):
    """A tensor that a module registers as a parameter when it is assigned to an attribute.

    Args:
        data: a tensor, whose memory is shared (views and tensors that require gradients are
            copied); an array, whose memory is shared too; or numbers.
        requires_grad: whether it is trained.
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        begin(self, data)
        self.lasting = True
        self.requires_grad_(requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to an attribute.

    Args:
        data: as for `Parameter`.
        data: as in `Parameter`.
        persistent: whether it is part of the state dict.
    """

    persistent: bool

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        begin(self, data)
        self.persistent = persistent


class _Unshaped(TensorType):
    """The type of what has no shape yet."""

    __slots__ = ()


class Uninitialized(Tensor):
    """A tensor with a type, but no shape and value yet; `materialize` gives it both."""

    settled: ClassVar[type[Tensor]]  # the class after materializing

    def __init__(self, requires_grad: bool, device: Any = None, dtype: Any = None) -> None:
        self.adopt(empty(0, dtype=dtype, device=device).lazy)
        self._set_apart()
        self.requires_grad_(requires_grad)

    def _set_apart(self) -> None:
        """Make the type another than that of empty tensors, whose plans are known."""
        kind = self.shown.type
        device = device_of(kind)
        self.shown.type = placed(kind, device) if device else _Unshaped(*kind)

    @property
    def lazy(self) -> Lazy:
        """Not available: there is no value.

        Raises:
            UnknownShapeError: always.
        """
        raise UnknownShapeError.here(
            f"{type(self).__name__}: an uninitialized parameter or buffer has no value; call the "
            f"module with an input, or materialize(shape), first"
        )

    @property
    def array(self) -> Any:
        """Not available, as `lazy`."""
        return self.lazy.array

    @property
    def shape(self) -> Size:
        """Not available, as `lazy`."""
        raise UnknownShapeError.here(
            f"{type(self).__name__}: the shape of an uninitialized parameter or buffer is not "
            f"known; call the module with an input, or materialize(shape), first"
        )

    @property
    def data(self) -> Tensor:
        """A tensor without elements: what programs fill before the shape is known is lost."""
        return empty(0, dtype=self.dtype)

    @data.setter
    def data(self, value: Any) -> None:
        """Not available, as `lazy`."""
        Tensor.data.__set__(self, value)

    @property
    def requires_grad(self) -> bool:
        """Whether it is trained."""
        return self.shown.tracked

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether it is trained."""
        self.shown.tracked = requires_grad
        self.shown.leaf = weakref.ref(self) if requires_grad else None
        return self

    @property
    def is_leaf(self) -> bool:
        """True: no operation produced it."""
        return True

    def materialize(
        self, shape: int | Sequence[int], device: Any = None, dtype: Any = None
    ) -> None:
        """Become a tensor of a shape, as the same object; its values are not set."""
        trained, dtype = self.requires_grad, self.dtype if dtype is None else dtype
        new = empty(shape, dtype=dtype, device=device)
        self.__class__ = self.settled  # type: ignore[assignment]
        with no_grad():
            self.requires_grad_(False)
            self.replace(new.lazy)
        self.requires_grad_(trained)
        self.lasting = True

    def recast(self, dtype: DType) -> None:
        """Set the element type for the time when there is a value."""
        trained = self.requires_grad
        with no_grad():
            self._show(cast(self.shown, dtype))
        self._set_apart()
        self.requires_grad_(trained)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        memo[id(self)] = twin = type(self)(self.requires_grad, None, self.dtype)
        return twin

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, None, self.dtype)


class UninitializedParameter(Uninitialized, Parameter):
    """A parameter without a shape yet; `materialize` gives the same object one.

    Args:
        requires_grad: whether it is trained.
        device: only the CPU.
        dtype: the element type, by default `weft.get_default_dtype()`.
    """

    settled = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(requires_grad, device, dtype)


class UninitializedBuffer(Uninitialized, Buffer):
    """A buffer without a shape yet.

    Args:
        requires_grad: whether it gets a gradient.
        device: only the CPU.
        dtype: the element type, by default `weft.get_default_dtype()`.
        persistent: whether it is part of the state dict.
    """

    settled = Buffer

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        super().__init__(requires_grad, device, dtype)
        self.persistent = persistent


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer is uninitialized."""
    return isinstance(param, Uninitialized)


for _kind in (Parameter, Buffer, UninitializedParameter, UninitializedBuffer):
    _kind.kind = Tensor
