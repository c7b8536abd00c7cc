"""Arguments as PyTorch and NumPy spell them: `dim` or `axis`, sizes one by one or as a tuple."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, cast

from weft.eager.tensor.dispatch import lazy_of
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.ops.refusal import shown


def dims_of(x: Any) -> tuple[int, ...]:
    """The shape of a tensor or of anything that can be one."""
    lazy = x.shown if isinstance(x, Handle) else lazy_of(x)
    shape: Any = lazy.type.shape  # always known: the types of values are concrete
    return shape


def integer(name: str, value: Any) -> int:
    """An integer from Python, NumPy or a tensor.

    Raises:
        DTypeError: it is none.
    """
    if type(value) is int:
        return value
    try:
        return value.array.__index__() if isinstance(value, Handle) else operator.index(value)
    except TypeError:
        raise DTypeError.here(f"{name}: expected an integer, got {shown(value)}") from None


def tensor_of(name: str, value: Any) -> Any:
    """A tensor; arrays and numbers are refused.

    Raises:
        DTypeError: it is none.
    """
    if isinstance(value, Handle):
        return value
    raise DTypeError.here(f"{name}: expected a tensor, got {shown(value)}")


def listed(name: str, tensors: Any, what: str = "tensor") -> list[Any]:
    """A sequence of tensors.

    Raises:
        DTypeError: it is something else.
        ShapeError: it is empty.
    """
    if isinstance(tensors, Handle) or not isinstance(tensors, Iterable):
        text = f"{name}: expected a sequence of {what}s, got {shown(tensors)}{at_user_line()}"
        raise DTypeError(text)
    given = list(cast("Iterable[Any]", tensors))
    if not given:
        raise ShapeError.here(f"{name}: expected at least one {what}, got none")
    return given


def axis_of(name: str, axis: Any, rank: int) -> int:
    """An axis counted from the front; a scalar counts as rank 1, as in PyTorch.

    Raises:
        OutOfRangeError: it lies outside the rank.
    """
    found = integer(name, axis)
    most = rank or 1
    if not -most <= found < most:
        raise OutOfRangeError.here(f"{name}: expected {-most} <= dim < {most}, got {found}")
    return found + most if found < 0 else found


def axes_of(name: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, sorted; `None` and an empty sequence mean all.

    Raises:
        OutOfRangeError: one lies outside the rank.
        ShapeError: one is named twice.
    """
    if axes is None:
        return tuple(range(rank))
    if type(axes) is int:
        only = axis_of(name, axes, rank)
        return (only,) if rank else ()
    if not isinstance(axes, Iterable) or isinstance(axes, Handle):
        axes = (axes,)
    found = [axis_of(name, a, rank) for a in cast("Iterable[Any]", axes)]
    if len(set(found)) != len(found):
        raise ShapeError.here(f"{name}: expected different dims, got {tuple(found)}")
    if not found:
        return tuple(range(rank))
    return tuple(sorted(found)) if rank else ()


def either(name: str, dim: Any, axis: Any, default: Any = None) -> Any:
    """The one of `dim` and `axis` that is given.

    Raises:
        ShapeError: both are.
    """
    if axis is None:
        return default if dim is None else dim
    if dim is not None and dim is not default:
        raise ShapeError.here(f"{name}: expected dim or axis, got both")
    return axis


def kept(name: str, keepdim: Any, keepdims: Any) -> bool:
    """Whether reduced axes stay, by PyTorch's or NumPy's argument.

    Raises:
        DTypeError: they contradict each other.
    """
    if keepdims is None:
        return keepdim
    if keepdim and not keepdims:
        raise DTypeError.here(f"{name}: expected keepdim or keepdims, got both")
    return keepdims


def check_same_type(name: str, x: Any, source: Any) -> None:
    """Refuse a source whose dtype differs from the tensor's.

    Raises:
        DTypeError: names both types.
    """
    if not isinstance(x, Handle) or not isinstance(source, Handle) or x.rules is not TORCH:
        return
    expected, found = x.lazy.type.dtype, source.lazy.type.dtype
    if found is not expected:
        raise DTypeError.here(
            f"{name}: expected a source of {expected}, as the tensor is, got one of {found}; "
            f"convert it: source.to({expected})"
        )


def sizes(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes of `x.view(2, 3)` or `x.view((2, 3))` as a tuple of integers."""
    if len(given) == 1 and type(given[0]) is not int:
        only = given[0]
        if isinstance(only, Iterable) and not isinstance(only, Handle):
            given = tuple(cast("Iterable[Any]", only))
    return tuple([integer(name, d) for d in given])


def filled(name: str, shape: tuple[int, ...], size: int, old: tuple[int, ...]) -> tuple[int, ...]:
    """A shape for `size` elements; a dimension of -1 is inferred.

    Raises:
        ShapeError: it has another number of elements.
    """
    count = 1
    free = -1
    for i, d in enumerate(shape):
        if d == -1 and free < 0:
            free = i
        elif d < 0:
            count = -1
            break
        else:
            count *= d
    if free >= 0 and count > 0 and size % count == 0:
        return (*shape[:free], size // count, *shape[free + 1 :])
    if free >= 0 or count != size:
        raise ShapeError.here(
            f"{name}: expected a shape of {size} elements for a tensor of shape {show(old)}, got "
            f"{show(shape)}"
        )
    return shape
