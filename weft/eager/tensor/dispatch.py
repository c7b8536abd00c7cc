"""Dispatch: casts and promotes the operands of an operation on tensors, and records it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.eager.record.call.plan import Plan, function_plan, op_plan
from weft.eager.record.memory.array_value import borrowed, leaf
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.recorder import recorder
from weft.eager.tensor.scalar import element, number
from weft.errors import DTypeError, ShapeError, nameless
from weft.ir.dtype import DType, bool_
from weft.ir.node import TensorType, at_user_line
from weft.ops.declaration import REGISTRY, Op
from weft.ops.declaration.autocast import declared, input_dtypes
from weft.ops.declaration.fact import Autocast
from weft.ops.refusal import shown
from weft.ops.warning import warn

frame: Final = sys._getframe  # pyright: ignore[reportPrivateUsage]
_NUMBERS: Final = (bool, int, float, complex)
CAST: Final[Op] = REGISTRY["cast"]
REAL: Final[Op] = REGISTRY["real"]
DISCARDED: Final = "Casting complex values to real discards the imaginary part"


def wrap(lazy: Lazy, like: Any = None) -> Any:
    """A new tensor that holds a value; of the class of the tensor `like`, if given."""
    return handle_of(Handle.default if like is None else like.kind, lazy)


def lazy_of(x: Any, dtype: DType | None = None, rules: promotion.Rules = promotion.TORCH) -> Lazy:
    """The value behind a tensor, an array, nested lists of numbers, or a number.

    Args:
        dtype: of a number; by default what `rules` say.
        rules: promotion rules; they also decide the dtype of Python floats in lists.
    """
    if isinstance(x, Handle):
        return x.lazy
    if isinstance(x, Lazy):
        return x
    if isinstance(x, np.ndarray):
        return borrowed(np.asarray(x))
    if isinstance(x, np.generic):
        return leaf(np.asarray(x, None if dtype is None else dtype.numpy))
    if isinstance(x, _NUMBERS):
        return number(x, rules.number(x, bool_), rules) if dtype is None else element(x, dtype)
    if isinstance(x, list | tuple):
        array = _array_of_lists(x)
        default = rules.floating(bool_)
        return leaf(array.astype(default.numpy) if array.dtype == np.float64 else array)
    raise nameless(
        DTypeError(
            f"expected a tensor, an array or a number, got {type(x).__name__}{at_user_line()}"
        )
    )


SEQUENCE: Final = "array element with a sequence"
"""NumPy's messages for nested lists of unequal lengths, or nested too deeply."""


def _array_of_lists(x: Any) -> Array:
    try:
        return np.array(x)
    except ValueError as error:
        if SEQUENCE not in str(error):
            raise
        text = f"expected nested lists of equal lengths, got {shown(x)}{at_user_line()}"
        raise nameless(ShapeError(text)) from error


def cast(lazy: Lazy, dtype: DType) -> Lazy:
    """A value as another dtype; itself if it has that dtype.

    Raises:
        DTypeError: complex to real.
    """
    if lazy.type.dtype is dtype:
        return lazy
    plain = lazy.record is None and not lazy.tracked and not lazy.type.dtype.is_complex
    if plain and lazy.array is not None and lazy.array.ndim == 0:
        return leaf(array_of(lazy).astype(dtype.numpy), lazy)
    return trace.now.record(op_plan(CAST, (lazy.type,), {"dtype": dtype}), (lazy,))[0]


def unowned(lazy: Lazy) -> Lazy:
    """A value for a new tensor to hold: itself if no tensor holds it, otherwise an equal one."""
    if not lazy.is_live:
        trace.now.expect(lazy)
        return lazy
    return trace.now.record(op_plan(REGISTRY["identity"], (lazy.type,), {}), (lazy,))[0]


def converted(lazy: Lazy, dtype: DType) -> Lazy:
    """`cast` on the user's request: complex to real is allowed, with a warning."""
    if lazy.type.dtype.is_complex and dtype.kind not in "bc":
        warn(DISCARDED)
        lazy = trace.now.record(op_plan(REAL, (lazy.type,), {}), (lazy,))[0]
    return cast(lazy, dtype)


def under_autocast(op: Op, lazies: Sequence[Lazy]) -> Sequence[Lazy]:
    """Inputs of an operation, cast if mixed precision is on."""
    low: DType | None = trace.now.autocast
    if low is None:
        return lazies
    wanted = input_dtypes(declared(op), [x.type.dtype for x in lazies], low)
    return [cast(x, d) for x, d in zip(lazies, wanted, strict=True)]


def record(op: Op, lazies: Sequence[Lazy], attrs: dict[str, Any]) -> tuple[Lazy, ...]:
    """Record a catalogue operation, with casts if mixed precision is on."""
    now = trace.now
    if now.autocast is not None:
        lazies = under_autocast(op, lazies)
    plan = op_plan(op, [x.type for x in lazies], attrs)
    if plan.single:
        return (now.record_one(plan, tuple(lazies), frame(1)),)
    return now.record_at(plan, tuple(lazies), frame(1))


def call(op: Op, *xs: Any, **attrs: Any) -> Any:
    """Call an operation with one result on tensors, arrays or numbers.

    Raises:
        ShapeError, DTypeError: the inputs do not fit; the message names the user's line.
    """
    return wrap(record(op, [lazy_of(x) for x in xs], attrs)[0], kind_of(*xs))


def kind_of(*xs: Any) -> Any:
    """The first tensor among arguments, whose class results take; `None` if there is none."""
    for x in xs:
        if isinstance(x, Handle):
            return x
    return None


# Functions of graph values


class Recorded:
    """A function of graph values as a function of tensors, recorded as one call.

    Positional arguments are tensors (or arrays, numbers, or `None` if omitted); keywords are
    static: hashable, and part of the program's structure.

    Args:
        shown: how many of the function's results its callers get.
    """

    def __init__(
        self, function: Callable[..., Any], differentiable: bool, rows: bool,
        autocast: Autocast | None = None, shown: int | None = None,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self.autocast = autocast or declared(function)
        self.function = function
        self.differentiable = differentiable
        self.rows = rows
        self._shown = shown

    def plan(self, lazies: Sequence[Lazy | None], static: dict[str, Any]) -> Plan:
        """The plan for inputs of these types."""
        present = tuple([x is not None for x in lazies])
        function = self.function if all(present) else _with_gaps(self.function, present)
        types = [x.type for x in lazies if x is not None]
        return function_plan(function, types, static, self.differentiable, self.rows)

    def record(self, xs: Sequence[Any], static: dict[str, Any]) -> tuple[Lazy, ...]:
        """Record a call; the values of its results."""
        plan, lazies = self._planned(xs, static)
        return trace.now.record_at(plan, lazies, frame(1))

    def _planned(self, xs: Sequence[Any], static: dict[str, Any]) -> tuple[Plan, tuple[Lazy, ...]]:
        """The plan of a call, and its inputs."""
        lazies: list[Lazy] = []
        types: list[TensorType] = []
        if trace.now.autocast is not None:
            return self._planned_with_gaps(xs, static)
        for x in xs:
            if x is None:
                return self._planned_with_gaps(xs, static)
            lazy = x.lazy if isinstance(x, Handle) else lazy_of(x)
            lazies.append(lazy)
            types.append(lazy.type)
        plan = function_plan(self.function, types, static, self.differentiable, self.rows)
        return plan, tuple(lazies)

    def _planned_with_gaps(
        self, xs: Sequence[Any], static: dict[str, Any]
    ) -> tuple[Plan, tuple[Lazy, ...]]:
        """The same with `None` for omitted arguments, or under mixed precision."""
        lazies = [None if x is None else lazy_of(x) for x in xs]
        low: DType | None = trace.now.autocast
        if low is not None:
            lazies = self._cast(lazies, low)
        return self.plan(lazies, static), tuple([x for x in lazies if x is not None])

    def _cast(self, lazies: list[Lazy | None], low: DType) -> list[Lazy | None]:
        given = [x.type.dtype for x in lazies if x is not None]
        wanted = iter(input_dtypes(self.autocast, given, low))
        return [None if x is None else cast(x, next(wanted)) for x in lazies]

    def __call__(self, *xs: Any, **static: Any) -> Any:
        """Record a call; returns a tensor, or a tuple if the function has several results."""
        return self._wrapped(kind_of(*xs), xs, static)

    def on(self, like: Any, *xs: Any, **static: Any) -> Any:
        """Record a call whose results take the class of the tensor `like`."""
        return self._wrapped(like, xs, static)

    def _wrapped(self, like: Any, xs: Sequence[Any], static: dict[str, Any]) -> Any:
        plan, lazies = self._planned(xs, static)
        if plan.single:
            kind = Handle.default if like is None else like.kind
            return recorder.made(kind, trace.now, plan, lazies, frame(1))
        found = trace.now.record_at(plan, lazies, frame(1))[: self._shown]
        if len(found) == 1:
            return wrap(found[0], like)
        return tuple([wrap(y, like) for y in found])


@functools.lru_cache(maxsize=1024)
def _with_gaps(function: Callable[..., Any], present: tuple[bool, ...]) -> Callable[..., Any]:
    """`function`, called with `None` for omitted arguments.

    Raises:
        DTypeError: an argument that may not be omitted.
    """
    parameters = inspect.signature(function).parameters.values()
    for parameter, given in zip(parameters, present, strict=False):
        if not given and parameter.annotation == "Value":
            text = f"expected a tensor, an array or a number as {parameter.name}, got None"
            raise nameless(DTypeError(text + at_user_line()))

    @functools.wraps(function)
    def filled(*values: Any, **static: Any) -> Any:
        given = iter(values)
        return function(*[next(given) if p else None for p in present], **static)

    return filled


def recorded(
    function: Callable[..., Any] | None = None, *, differentiable: bool = True, rows: bool = False,
    autocast: Autocast | None = None, looks_up: bool = False, shown: int | None = None,
) -> Any:  # fmt: skip
    """Turn a function of graph values (`weft.ops`) into one of tensors, recorded as one call.

    Args:
        differentiable: whether gradients flow through it.
        rows: whether it takes row-sparse values (`weft.ops.RowSparse`) as they are.
        autocast: its dtype under mixed precision, if the function does not declare it; by default
            the widest of its inputs' dtypes.
        looks_up: whether it takes indices and a table whose gradient is row-sparse.
        shown: how many of its results callers get: further ones are there so that its gradient need
            not compute them again.
    """
    if function is None:
        return functools.partial(
            recorded, differentiable=differentiable, rows=rows, autocast=autocast,
            looks_up=looks_up, shown=shown,
        )  # fmt: skip
    if looks_up:
        vars(function)["looks_up"] = True  # also set for plans of a wrapped function
    return Recorded(function, differentiable, rows, autocast, shown)


def looks_up(plan: Plan) -> bool:
    """Whether it is a call of (indices, table, ...) with a row-sparse gradient of the table."""
    return bool(getattr(plan.pattern.called, "looks_up", False))
