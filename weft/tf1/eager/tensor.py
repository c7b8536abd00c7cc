"""`EagerTensor`: a tensor that has its value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np

from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.dispatch import wrap
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, ShapeError
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.shape import compatible, show
from weft.tf1.framework.convert import internal_convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.overload import OPERATORS
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import as_shape

Array = np.ndarray[Any, Any]
Held = Array | Handle
"""A small array, which NumPy computes with, or a tensor of Weft's eager front end."""
SMALL: Final = 32
"""Elements up to which an array stays with NumPy, so that shapes are known when they are used."""


class ReadVariable(Protocol):
    """The variable that a tensor was read from."""

    @property
    def snapshot(self) -> Tensor:
        """What the graph reads."""
        ...


class EagerTensor(Tensor):
    """A tensor that has its value.

    Attributes:
        held: the value.
        variable: the variable whose value it is, if it was read.
        mask: Keras's mask of its steps.
    """

    has_value = True

    def __init__(
        self, op: Operation, index: int, held: Held, variable: ReadVariable | None = None
    ) -> None:
        self.held: Held = held
        self.variable = variable
        self.mask: Any = None
        self.stand_in: Tensor | None = None
        value = _value_of(held)
        super().__init__(op, index, value, as_dtype(value.dtype))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def numpy(self) -> Any:
        """The value: an array, or a number of NumPy; bytes for a text."""
        array = array_in(self.held)
        if array.ndim == 0:
            return array[()]
        return array.copy()

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value; there is nothing to feed."""
        del feed_dict, session
        return self.numpy()

    def set_shape(self, shape: Any) -> None:
        """Check the shape.

        Raises:
            ShapeError: it is another one.
        """
        if not compatible(self._used.shape, as_shape(shape).as_dims()):
            text = f"expected shape {shape}, got {show(self._used.shape)}"
            raise ShapeError.here(f"set_shape: {text}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        del copy
        array = array_in(self.held)
        return array.copy() if dtype is None else array.astype(dtype)

    def __bool__(self) -> bool:
        return bool(array_in(self.held))

    def __int__(self) -> int:
        return int(array_in(self.held))

    def __float__(self) -> float:
        return float(array_in(self.held))

    def __index__(self) -> int:
        array = array_in(self.held)
        if array.ndim or array.dtype.kind not in "iu":
            raise DTypeError.here(f"expected an integer, got {self!r}")
        return int(array)

    def __len__(self) -> int:
        shape = array_in(self.held).shape if isinstance(self.held, np.ndarray) else self.shape
        if not len(shape):
            raise DTypeError.here("len: expected a tensor with axes, got a scalar")
        return int(shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.shape.ndims:
            raise DTypeError.here("expected a tensor with axes to iterate over, got a scalar")
        return (OPERATORS["getitem"](self, i) for i in range(len(self)))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits) if digits is not None else round(float(self))

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __repr__(self) -> str:
        value = array_in(self.held)
        kind = self._dtype.name
        return f"<tf.Tensor: shape={value.shape}, dtype={kind}, numpy={self.numpy()!r}>"

    def __str__(self) -> str:
        array = array_in(self.held)
        return f"tf.Tensor({array}, shape={array.shape}, dtype={self._dtype.name})"

    def __copy__(self) -> EagerTensor:
        return self

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return self

    def __reduce__(self) -> Any:
        return internal_convert_to_tensor, (np.asarray(self),)

    def watched(self) -> Handle:
        """The value, to which gradients can be asked for from now on."""
        handle = handle_in(self.held)
        if not handle.lazy.tracked:
            handle = variable_handle(handle.lazy)
        self.held = handle
        return handle


def array_in(held: Held) -> Array:
    """The array itself, computed now if it is pending."""
    return held if isinstance(held, np.ndarray) else array_of(held.lazy)


def lazy_in(held: Held) -> Lazy:
    """The value for a call that is recorded."""
    return leaf(held) if isinstance(held, np.ndarray) else held.lazy


def handle_in(held: Held) -> Handle:
    """The value as a tensor of the eager front end."""
    return wrap(leaf(held)) if isinstance(held, np.ndarray) else held


def variable_handle(lazy: Lazy) -> Handle:
    """A new leaf with this value, to which gradients can be asked for."""
    made: Any = wrap(lazy).detach()
    return made.requires_grad_() if lazy.type.dtype.is_inexact else made


def held_array(array: Array) -> Held:
    """An array as it is held; nothing else may write to it."""
    if array.size <= SMALL or array.dtype.hasobject:
        return array
    return wrap(leaf(array))


def _value_of(held: Held) -> Value:
    """A value of a node of its own: a constant, for small integers and texts."""
    if isinstance(held, Handle):
        kind = TensorType(held.lazy.type.dtype, tuple(held.lazy.type.shape or ()))
        return Node(
            "placeholder", (), {"dtype": kind.dtype, "shape": kind.shape}, (kind,), "x"
        ).outputs[0]
    kind = TensorType(as_dtype(held.dtype).ir, held.shape)
    if held.dtype.kind in "fc" or held.dtype.kind == "V":
        attrs: dict[str, Any] = {"dtype": kind.dtype, "shape": kind.shape}
        return Node("placeholder", (), attrs, (kind,), "x").outputs[0]
    return Node("constant", (), {"value": Literal(held)}, (kind,), "x").outputs[0]
