"""Reshape, permute, expand and detach."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

from weft.eager.functions.recall.memory import of_asked_shape
from weft.eager.functions.shape.bit_view import view_bits
from weft.eager.tensor.argument import axes_of, axis_of, dims_of, either, filled, sizes
from weft.eager.tensor.dispatch import lazy_of, record, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import become
from weft.eager.tensor.view.memory_format import ORDERS, check_format
from weft.eager.tensor.view.view import View
from weft.eager.tensor.view.view_transform import (
    Detached,
    Expanded,
    Shaped,
    fits,
    is_dense,
    show,
)  # fmt: skip
from weft.errors import DTypeError, GradientError, ShapeError
from weft.ir.dtype import DType, as_dtype
from weft.ir.shape import show as text
from weft.ops.declaration import REGISTRY

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor
from weft.eager.functions.shape.permutation import matrix_transpose, permute, swapaxes, t, transpose

__all__ = [
    "broadcast_to", "detach", "expand", "expand_dims", "flatten", "ravel", "reshape", "squeeze",
    "unflatten", "unsqueeze",
]  # fmt: skip

# Another shape


@of_asked_shape
def reshape(x: Any, *dims: Any, shape: Any = None) -> Tensor:
    """Reshape in row-major order; one dimension may be -1.

    Raises:
        ShapeError: a shape of another number of elements.
    """
    old = dims_of(x)
    new = sizes("reshape", dims if shape is None else (shape,))
    return _of_shape(x, filled("reshape", new, math.prod(old), old))


def _of_shape(x: Any, shape: tuple[int, ...]) -> Tensor:
    """A view if the memory allows it, otherwise a copy."""
    lens = Shaped(shape)
    if isinstance(x, Handle) and x.view_of is not None and not fits(x, shape):
        return wrap(lens.take(x.lazy), x)
    return show(x, lens)


@of_asked_shape
def view(x: Any, *shape: Any, dtype: Any = None, size: Any = None) -> Tensor:
    """`reshape` that never copies; with a dtype, the same bits as that dtype.

    Raises:
        ShapeError: a shape with another number of elements, or memory that does not allow a view.
        DTypeError: a dtype of another size, for which the last axis cannot be split or joined.
    """
    if dtype is not None:
        return view_bits(x, as_dtype(dtype))
    if len(shape) == 1 and isinstance(shape[0], DType | type):
        return view_bits(x, as_dtype(shape[0]))
    old = dims_of(x)
    new = filled("view", sizes("view", shape if size is None else (size,)), math.prod(old), old)
    if isinstance(x, Handle) and x.view_of is not None and not fits(x, new):
        raise ShapeError.here(
            f"view: the elements of this tensor of shape {text(old)} do not lie in memory so that "
            f"{text(new)} shows them without a copy; use reshape(), or contiguous() first"
        )
    return show(x, Shaped(new))


def contiguous(x: Handle) -> Tensor:
    """The tensor itself if its elements lie in memory in their order, else a copy."""
    if is_dense(x):
        same: Any = x
        return same
    return wrap(record(REGISTRY["identity"], (x.lazy,), {})[0], x)


def ravel(x: Any) -> Tensor:
    """Flatten to one axis; a copy unless contiguous."""
    x = x if not isinstance(x, Handle) or is_dense(x) else contiguous(x)
    return _of_shape(x, (math.prod(dims_of(x)),))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes from `start_dim` to `end_dim`.

    Raises:
        OutOfRangeError, ShapeError: axes outside the rank, or in the wrong order.
    """
    dims = dims_of(x) or (1,)
    first, last = (axis_of("flatten", d, len(dims)) for d in (start_dim, end_dim))
    if first > last:
        raise ShapeError.here(
            f"flatten: expected start_dim before end_dim, got {start_dim} and {end_dim}"
        )
    if first == last and isinstance(x, Handle) and dims_of(x):
        same: Any = x
        return same
    middle = math.prod(dims[first : last + 1])
    return _of_shape(x, (*dims[:first], middle, *dims[last + 1 :]))


def unflatten(x: Any, dim: int, sizes: Any) -> Tensor:
    """Split an axis into several of the given sizes; one may be -1.

    Raises:
        OutOfRangeError, ShapeError: an axis outside the rank, or sizes that do not fit.
    """
    dims = dims_of(x)
    at = axis_of("unflatten", dim, len(dims))
    if not tuple(sizes):
        raise ShapeError.here("unflatten: expected at least one size, got none")
    inner = filled("unflatten", tuple(sizes), dims[at], dims)
    return show(x, Shaped((*dims[:at], *inner, *dims[at + 1 :])))


def squeeze(x: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Remove axes of size 1; with `dim`, only those among it.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    dims, at = dims_of(x), either("squeeze", dim, axis)
    gone = () if at == () else axes_of("squeeze", at, len(dims))
    return show(x, Shaped(tuple([d for i, d in enumerate(dims) if d != 1 or i not in gone])))


def unsqueeze(x: Any, dim: Any) -> Tensor:
    """Insert an axis of size 1 at `dim`.

    Raises:
        OutOfRangeError: an axis outside the rank.
    """
    dims = dims_of(x)
    at = axis_of("unsqueeze", dim, len(dims) + 1)
    return show(x, Shaped((*dims[:at], 1, *dims[at:])))


def expand_dims(x: Any, axis: Any) -> Tensor:
    """`unsqueeze`, under NumPy's name."""
    return unsqueeze(x, axis)


# Expansion


def expand(x: Any, *shape: Any, size: Any = None) -> Tensor:
    """Expand axes of size 1 to `shape`, or `size`, in which -1 keeps an axis.

    Raises:
        ShapeError: the shape does not follow by repetition.
    """
    return broadcast_to(x, sizes("expand", shape if size is None else (size,)))


def expand_as(x: Any, other: Any) -> Tensor:
    """Expand to the shape of another tensor."""
    return broadcast_to(x, dims_of(other))


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """Axes of one element repeated to `shape`, in which -1 keeps an axis.

    Raises:
        ShapeError: the shape does not follow by repetition.
    """
    wanted = sizes("broadcast_to", (shape,))
    old = dims_of(x)
    lead = len(wanted) - len(old)
    kept = [old[i - lead] if d == -1 and i >= lead else d for i, d in enumerate(wanted)]
    wanted = tuple(kept)
    if lead < 0 or any(d not in (1, w) for d, w in zip(old, wanted[lead:], strict=True)):
        raise ShapeError.here(f"expand: shape {text(old)} does not broadcast to {text(wanted)}")
    return show(x, Expanded(wanted))


# Detaching


def detach(x: Any) -> Tensor:
    """The same memory, detached from the autograd graph."""
    tensor = show(x, Detached())
    found = tensor.view_of
    assert found is not None
    _note_detached(found)
    return tensor


def _note_detached(view: View) -> None:
    if not hasattr(view.base, "detached"):
        view.base.detached = weakref.WeakSet()
    view.base.detached.add(view)


def hand_over(x: Handle, new: Handle) -> None:
    """Move the memory of a constant to a new tensor, and make the constant its `detach()`."""
    _note_detached(x.hand_over(new, Detached()))


class Methods(Handle):
    """The methods of this module."""

    def unsqueeze_(self, dim: Any) -> Any:
        """`unsqueeze` in place."""
        return become(self, unsqueeze(self, dim), "unsqueeze_")

    def squeeze_(self, dim: Any = None) -> Any:
        """`squeeze` in place."""
        return become(self, squeeze(self, dim), "squeeze_")

    def t_(self) -> Any:
        """`t` in place."""
        return become(self, t(self), "t_")

    def transpose_(self, dim0: Any, dim1: Any) -> Any:
        """`transpose` in place."""
        return become(self, transpose(self, dim0, dim1), "transpose_")

    def swapaxes_(self, axis0: Any, axis1: Any) -> Any:
        """`swapaxes` in place."""
        return become(self, swapaxes(self, axis0, axis1), "swapaxes_")

    swapdims_ = swapaxes_

    def detach_(self) -> Any:
        """`detach` in place; results computed from it before keep their gradient.

        Raises:
            GradientError: it is a view, whose gradient flows to its base.
        """
        if self.view_of is not None and self.lazy.tracked:
            raise GradientError.here("detach_: a view cannot be detached in place; use detach()")
        return self.detach_in_place(detach(self))

    def view_as(self, other: Any) -> Tensor:
        """`view` with the shape of another tensor."""
        return view(self, dims_of(other))

    def reshape_as(self, other: Any) -> Tensor:
        """`reshape` to the shape of another tensor."""
        return reshape(self, dims_of(other))

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        """Whether the tensor is contiguous; only some views are not.

        Args:
            memory_format: ask for another order of the axes.
        """
        check_format(memory_format)
        order = ORDERS.get(memory_format)
        if order is None:
            return is_dense(self)
        return len(order) == len(dims_of(self)) and is_dense(permute(self, order))

    def contiguous(self, *, memory_format: Any = None) -> Tensor:
        """The tensor itself if its elements lie in memory in their order, else a copy.

        Args:
            memory_format: no effect; see `view.memory_format`.
        """
        check_format(memory_format)
        return contiguous(self)

    @property
    def T(self) -> Tensor:
        """All axes reversed."""
        return transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes in each other's place."""
        return matrix_transpose(self)

    @property
    def data(self) -> Tensor:
        """The same memory, detached.

        Assigning stores a copy of a value in new memory: earlier `data` or `detach()` results keep
        the old memory.

        Raises:
            DTypeError: the value is not floating-point, but the tensor requires grad.
        """
        return detach(self)

    @data.setter
    def data(self, value: Any) -> None:
        lazy = lazy_of(value)
        if self.shown.tracked and not lazy.type.dtype.is_inexact:
            raise DTypeError.here(
                f"data: expected floating-point numbers, as the tensor needs a gradient, got "
                f"{lazy.type.dtype}"
            )
        self.depart(Detached().take(lazy))
