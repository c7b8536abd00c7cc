"""Builds functions of tensors from catalogue operations, by kind of operation."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from weft import ops
from weft.documentation import named
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.argument import axis_of, either
from weft.eager.tensor.dispatch import (
    Recorded,
    cast,
    converted,
    kind_of,
    lazy_of,
    record,
    recorded,
    wrap,
)
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.elementwise import Plans, binary, plans_of, promoted, unary
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.recorder import recorder
from weft.errors import DTypeError
from weft.ir.dtype import DType, as_dtype, bool_, float32, int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY, Elementwise, Op
from weft.ops.declaration.face import FACES, Face, arity
from weft.ops.declaration.fact import Autocast
from weft.ops.reduction.statistic import in_wider
from weft.ops.refusal import REFUSABLE, guarded, refuse

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

frame = sys._getframe  # pyright: ignore[reportPrivateUsage]
Binary = Callable[[Any, Any], "Tensor"]
Unary = Callable[[Any], "Tensor"]
F = TypeVar("F", bound=Callable[..., Any])


_OPERANDS: Final = (Handle, np.ndarray, np.generic, int, float, complex)


def takes(x: Any, beside: Any) -> bool:
    """Whether it can be an operand beside a tensor; to a list, `+=` appends a tensor's elements."""
    if isinstance(x, _OPERANDS):
        return True
    return isinstance(x, list | tuple) and isinstance(beside, Handle) and beside.rules.lists


def _asked(op: Op, x: Any, other: Any, floats: bool) -> Any:
    """An operator on operands of any type."""
    return binary(op, x, other, floats) if takes(x, other) and takes(other, x) else NotImplemented


def _with_number_first(plans: Plans, x: Any, other: Handle, at: FrameType) -> Lazy | None:
    """The value of `1.0 - other`, if its plan is cached."""
    b = other.shown if other.window is None else other.lazy
    plan, numbers = plans.find(x.__class__, b.type, other.rules) or (None, None)
    a = None if numbers is None else numbers.get(x)
    return None if plan is None or a is None else trace.now.record_one(plan, (a, b), at)


def of_two(name: str, floats: bool = False, operator: bool = False) -> Binary:
    """A binary catalogue operation.

    Args:
        floats: integers become floating-point first.
        operator: return `NotImplemented` for unknown operands, so that Python tries their operator.
    """
    op: Op = REGISTRY[name]
    plans = plans_of(op)
    otherwise = _asked if operator else binary

    @_entitled(op)
    def function(x: Any, other: Any) -> Tensor:
        try:
            now = trace.now
            if isinstance(x, Handle) and now.autocast is None:
                a = x.shown if x.window is None else x.lazy
                b: Any = None
                if isinstance(other, Handle):
                    b = other.shown if other.window is None else other.lazy
                    type_ = b.type
                else:
                    type_ = other.__class__
                left, right, rules, plan, numbers = plans.latest
                if left is not a.type or right is not type_ or rules is not x.rules:
                    plan, numbers = plans.find(a.type, type_, x.rules) or (None, None)
                if plan is not None:
                    if numbers is not None:
                        b = numbers.get(other)
                    if b is not None:
                        return recorder.made(x.kind, now, plan, (a, b), frame(1))
            elif isinstance(other, Handle) and now.autocast is None:
                b = _with_number_first(plans, x, other, frame(1))
                return otherwise(op, x, other, floats) if b is None else handle_of(other.kind, b)
            return otherwise(op, x, other, floats)
        except REFUSABLE as error:
            return refuse(error, name, function, (x, other), {})

    return guarded(function)


def of_one(name: str, floats: bool = False) -> Unary:
    """A unary catalogue operation; with `floats`, integers become floating-point first."""
    op: Op = REGISTRY[name]
    plans = plans_of(op)

    @_entitled(op)
    def function(x: Any) -> Tensor:
        try:
            now = trace.now
            if isinstance(x, Handle) and now.autocast is None:
                lazy = x.shown if x.window is None else x.lazy
                plan = plans.of(lazy.type)
                if plan is not None:
                    return recorder.made(x.kind, now, plan, (lazy,), frame(1))
            return unary(op, x, floats)
        except REFUSABLE as error:
            return refuse(error, name, function, (x,), {})

    return guarded(function)


def of_bools(function: Unary, dtype: DType) -> Unary:
    """`function`, extended to booleans as numbers; the result then has `dtype`, as in PyTorch."""

    @named(function.__name__, function.__doc__)
    def of_any(x: Any) -> Tensor:
        if isinstance(x, Handle) and x.lazy.type.dtype is bool_ and x.rules is TORCH:
            return wrap(cast(function(wrap(cast(x.lazy, int64), x)).lazy, dtype), x)
        return function(x)

    return of_any


@functools.cache
def of_op(op: Op) -> Callable[..., Any]:
    """Any catalogue operation as a function of tensors; attributes are keywords.

    Inputs of an elementwise operation are promoted to one dtype, floating-point if it takes no
    integers.
    """
    together = isinstance(op.lower, Elementwise)
    floats = together and not takes_dtype(op, int64)

    @_entitled(op)
    def function(*xs: Any, **attrs: Any) -> Any:
        lazies = promoted(*xs, floats=floats) if together else [lazy_of(x) for x in xs]
        results = tuple([wrap(y, kind_of(*xs)) for y in record(op, lazies, attrs)])
        return results[0] if len(results) == 1 else results

    return function


def _entitled(op: Op) -> Callable[[F], F]:
    """A decorator: the name of an operation, and the documentation of its face."""
    text = f"`{op.name}` of the catalogue." if op.face is None else op.face.documented()
    return named(op.name, text)


def takes_dtype(op: Op, dtype: DType) -> bool:
    """Whether the rule of an operation accepts inputs of a dtype."""
    try:
        op.dtype(*[dtype for _ in op.inputs], **op.attrs)
    except DTypeError:
        return False
    return True


def of_floats(name: str, source: Any) -> Callable[..., Tensor]:
    """An operation or formula with a face, recorded as a composite of floating-point inputs."""
    face: Face = source.face
    run = recorded(in_wider(face.wide or float32, source))

    def single(x: Any) -> Tensor:
        return run.on(kind_of(x), *promoted(x, floats=True))

    def double(x: Any, other: Any) -> Tensor:
        like = kind_of(x, other)
        return run.on(like, *promoted(x, other, floats=True))

    return named(name, face.documented())(single if arity(source) == 1 else double)


def with_attributes(name: str) -> Recorded:
    """A unary catalogue operation as a recorded function; attributes are keywords."""
    op: Op = REGISTRY[name]

    @named(name, None)
    def function(x: Value, **attrs: Any) -> Value:
        return op(x, **attrs)

    return recorded(function)


def both(run: Any, x: Any, other: Any, floats: bool = False) -> Tensor:
    """A recorded binary function, whose inputs are promoted to their common dtype."""
    like = kind_of(x, other)
    return run.on(like, *promoted(x, other, floats=floats))


def rounding(name: str) -> Unary:
    """A catalogue operation on floating-point numbers that returns integers unchanged."""
    op: Op = REGISTRY[name]
    same = REGISTRY["identity"]

    @_entitled(op)
    def function(x: Any) -> Tensor:
        dtype = lazy_of(x).type.dtype
        if dtype.is_complex:
            text = f"{name}: expected real numbers, got {dtype}; take real(x) or imag(x)"
            raise DTypeError.here(text)
        return unary(op if dtype.is_floating else same, x)

    return function


def of_truths(name: str) -> Callable[..., Tensor]:
    """A catalogue operation on booleans; numbers other than 0 are true."""
    op: Op = REGISTRY[name]

    def single(x: Any) -> Tensor:
        return wrap(record(op, (cast(lazy_of(x), bool_),), {})[0], kind_of(x))

    def double(x: Any, other: Any) -> Tensor:
        like = kind_of(x, other)
        a, b = (cast(lazy_of(v), bool_) for v in (x, other))
        return wrap(record(op, (a, b), {})[0], like)

    return _entitled(op)(single if len(op.inputs) == 1 else double)


def running(name: str, x: Any, dim: Any, dtype: Any = None) -> Tensor:
    """A cumulative operation or formula along an axis."""
    lazy = lazy_of(x)
    if dtype is not None:
        lazy = converted(lazy, as_dtype(dtype))
    elif not lazy.type.dtype.is_inexact:
        lazy = cast(lazy, int64)
    at = axis_of(name, dim, len(known(lazy.type.shape)))
    return _accumulated.on(kind_of(x), lazy, name=name, axis=at)


@recorded(autocast=Autocast.FLOAT32)
def _accumulated(x: Value, *, name: str, axis: int) -> Value:
    return getattr(ops, name)(x, axis=axis) if x.shape else ops.identity(x)


def along(name: str) -> Callable[..., Tensor]:
    """A cumulative catalogue operation whose axis is an argument, by default the first."""

    @_entitled(REGISTRY[name])
    def function(x: Any, dim: Any = None, *, dtype: Any = None, axis: Any = None) -> Tensor:
        return running(name, x, either(name, dim, axis, 0), dtype)

    return function


WRITTEN: Final[dict[str, Callable[..., Any]]] = {}
"""Functions of faces that are written by hand, by the names of the declarations."""


def written(function: F) -> F:
    """Marks the function of a face that has more than tensors as arguments, or is an exception.

    It has the name of the declaration, whose documentation it takes if it has none.
    """
    name = function.__name__
    function.__doc__ = function.__doc__ or FACES[name].face.documented()
    WRITTEN[name] = function
    return function
