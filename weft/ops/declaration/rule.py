"""Shared dtype and shape rules; errors say what was expected and what was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, bool_
from weft.ir.node import Value
from weft.ir.shape import (
    Dim,
    Dims,
    Shape,
    broadcast,
    is_static,
    known,
    merge,
    normal_axes,
    normal_axis,
)
from weft.ops.declaration.attribute import UNKNOWN
from weft.ops.declaration.op import catalogue

# Dtype rules: rule(*dtypes, **attrs) -> dtype


def same(*dtypes: DType, **_: Any) -> DType:
    """At least one input; all have one dtype, which is the output's."""
    if not dtypes:
        raise DTypeError("expected at least one input")
    first = dtypes[0]
    for d in dtypes:
        if d is not first:
            raise DTypeError(f"expected one dtype, got {_listed(dtypes)}")
    return first


def inexact(*dtypes: DType, **_: Any) -> DType:
    """One floating-point or complex dtype."""
    return _of_kind(dtypes, "fc", "floating-point")


def floating(*dtypes: DType, **_: Any) -> DType:
    """One floating-point dtype."""
    return _of_kind(dtypes, "f", "floating-point")


def numeric(*dtypes: DType, **_: Any) -> DType:
    """One dtype of real numbers: anything but bool."""
    return _of_kind(dtypes, "iuf", "numeric")


def arithmetic(*dtypes: DType, **_: Any) -> DType:
    """One numeric dtype, possibly complex."""
    return _of_kind(dtypes, "iufc", "numeric")


def ordered(*dtypes: DType, **_: Any) -> DType:
    """One ordered dtype: anything but complex."""
    return _of_kind(dtypes, "biuf", "real")


def signed(*dtypes: DType, **_: Any) -> DType:
    """One signed dtype."""
    return _of_kind(dtypes, "if", "signed numeric")


def integer(*dtypes: DType, **_: Any) -> DType:
    """One integer dtype."""
    return _of_kind(dtypes, "iu", "integer")


def boolean(*dtypes: DType, **_: Any) -> DType:
    """All inputs are bool, and so is the output."""
    return _of_kind(dtypes, "b", "bool")


def bits(*dtypes: DType, **_: Any) -> DType:
    """One integer or bool dtype."""
    return _of_kind(dtypes, "biu", "integer or bool")


def comparison(*dtypes: DType, **_: Any) -> DType:
    """All inputs have one dtype; the output is bool."""
    same(*dtypes)
    return bool_


def to_dtype(*_: DType, dtype: Any, **__: Any) -> DType:
    """The attribute `dtype`."""
    return as_dtype(dtype)


def index_dtype(dtype: DType, name: str = "indices") -> DType:
    """Check that an input holds integers."""
    if not dtype.is_integer:
        raise DTypeError(f"{name}: expected an integer dtype, got {dtype}")
    return dtype


def like_weights(name: str, x: Value, *weights: Value | None) -> None:
    """Refuse an input of another dtype than the weights it meets: a cast of either loses digits."""
    for w in weights:
        if w is not None and w.dtype is not x.dtype:
            raise DTypeError.here(
                f"{name}: expected an input of {w.dtype}, as the weights are, got {x.dtype}; "
                f"convert it: x.to({w.dtype})"
            )


def floating_input(name: str, x: Value) -> None:
    """Refuse an input whose normalized values its dtype could not hold."""
    if not x.dtype.is_floating:
        raise DTypeError.here(
            f"{name}: expected a floating-point input, got {x.dtype}; convert it: x.float()"
        )


def _of_kind(dtypes: tuple[DType, ...], kinds: str, label: str) -> DType:
    dtype = same(*dtypes)
    if dtype.kind not in kinds:
        raise DTypeError(f"expected a {label} dtype, got {dtype}")
    return dtype


def _listed(dtypes: tuple[DType, ...]) -> str:
    return ", ".join(map(repr, dtypes[:-1])) + f" and {dtypes[-1]}"


# Shape rules: rule(*shapes, **attrs) -> shape. Ranks must be known unless noted.


def same_shape(*shapes: Shape, **_: Any) -> Shape:
    """All inputs have one shape, which is the output's; ranks may be unknown."""
    merged = shapes[0]
    for shape in shapes[1:]:
        merged = merge(merged, shape)
    return merged


def broadcast_shape(*shapes: Shape, **_: Any) -> Shape:
    """Inputs broadcast against each other, as in NumPy; ranks may be unknown."""
    return broadcast(*shapes)


def scalar_shape(*_: Shape, **__: Any) -> Shape:
    """The output is a scalar."""
    return ()


def reduced_shape(x: Shape, axes: Any = None, keepdims: bool = False, **_: Any) -> Shape:
    """The shape after reducing `axes` (`None`: all); the rank must be known."""
    assert x is not None
    gone = normal_axes(axes, len(x))
    if keepdims:
        return tuple(1 if i in gone else d for i, d in enumerate(x))
    return tuple(d for i, d in enumerate(x) if i not in gone)


def attribute_shape(*_: Shape, shape: Any, **__: Any) -> Shape:
    """The attribute `shape`, which may be partly or wholly unknown."""
    return None if shape is UNKNOWN else checked_shape(shape)


def checked_shape(shape: Any) -> Shape:
    """`shape` as dimensions: from an int or a tuple of nonnegative ints or `None`s.

    Raises:
        ShapeError: a dimension is negative or no integer.
    """
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    for d in dims:
        if d is not None and (not isinstance(d, int) or isinstance(d, bool) or d < 0):
            raise ShapeError(f"shape: expected dimensions that are not negative, got {dims}")
    return dims


def add_dims(*dims: Dim) -> Dim:
    """The sum of dimensions; unknown if one is."""
    total = 0
    for d in dims:
        if d is None:
            return None
        total += d
    return total


def mul_dims(*dims: Dim) -> Dim:
    """The product of dimensions; zero wins over unknown."""
    total = 1
    for d in dims:
        if d == 0:
            return 0
    for d in dims:
        if d is None:
            return None
        total *= d
    return total


def per_axis(rule: Callable[..., Shape]) -> Callable[..., Shape]:
    """A partial shape rule from one that needs the rank: an unknown rank gives an unknown shape."""

    def partial(x: Shape, *rest: Shape, **attrs: Any) -> Shape:
        if x is None or any(s is None for s in rest) or UNKNOWN in attrs.values():
            return None
        return rule(x, *rest, **attrs)

    return partial


def concrete(x: Any) -> tuple[int, ...]:
    """The fully known shape of a value or anything with a shape; see `shape.known`."""
    return known(x.shape)


def shape_argument(x: Value) -> Any:
    """The shape of `x` as an attribute: numbers if known, otherwise a value that computes it."""
    return x.shape if is_static(x.shape) else catalogue.shape_of(x)


def dims_of(x: Value) -> tuple[Any, ...]:
    """The dimensions of `x`: numbers if known, otherwise values that compute them.

    Raises:
        UnknownShapeError: its rank is unknown.
    """
    if x.shape is None or is_static(x.shape):
        return known(x.shape)
    return tuple([catalogue.shape_of(x)[i] if d is None else d for i, d in enumerate(x.shape)])


def sum_like(g: Value, x: Value) -> Value:
    """Sum a cotangent over the axes along which `x` was broadcast, back to the shape of `x`."""
    if g.shape == x.shape and is_static(x.shape):
        return g
    return catalogue.sum_to(g, shape=shape_argument(x))


def reshape_like(g: Value, x: Value) -> Value:
    """`g` with the shape of `x`."""
    return catalogue.reshape(g, shape=shape_argument(x))


# Normal forms: rule(*shapes, **attrs) -> attrs


def front_axis(x: Dims, *_: Shape, axis: int, **attrs: Any) -> Mapping[str, Any]:
    """The attribute `axis` counted from the front."""
    return {**attrs, "axis": normal_axis(axis, len(x))}


def front_new_axis(x: Dims, *_: Shape, axis: int, **attrs: Any) -> Mapping[str, Any]:
    """The attribute `axis` of an added dimension, counted from the front."""
    return {**attrs, "axis": normal_axis(axis, len(x) + 1)}


def whole_shape(*_: Shape, shape: Any, **attrs: Any) -> Mapping[str, Any]:
    """The attribute `shape` as a tuple."""
    return {**attrs, "shape": checked_shape(shape)}
