"""Dispatch: casts and promotes the operands of an operation on tensors, and records it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.eager.record.access import array_of
from weft.eager.record.array_value import borrowed, leaf
from weft.eager.record.lazy import Array, Lazy
from weft.eager.record.plan import Plan, function_plan, further_plans, intern, op_plan
from weft.eager.record.state import trace
from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle, handle_of
from weft.eager.tensor.scalar import Numbers, element, lacks, number, numbers_beside
from weft.errors import DTypeError, ShapeError, nameless
from weft.ir.dtype import DType, bool_, float16, float32, float64, uint8
from weft.ir.node import TensorType
from weft.ops.base import REGISTRY, Op, at_user_line
from weft.ops.declaration.autocast import declared, input_dtypes
from weft.ops.declaration.fact import Autocast
from weft.ops.elementwise.compare import whole_comparison
from weft.ops.refusal import shown
from weft.ops.warning import warn

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
        return leaf(np.asarray(x))
    if isinstance(x, bool | int | float | complex):
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
        return leaf(array_of(lazy).astype(dtype.numpy))
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
    lazies = under_autocast(op, lazies)
    plan = op_plan(op, [x.type for x in lazies], attrs)
    return trace.now.record(plan, tuple(lazies))


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


# Elementwise operations, with promotion

Found = tuple[Plan, Numbers | None]


class Plans(dict[Any, Found]):
    """The plans of an operation by its operands' types; inputs for bare numbers.

    Only for operands that need no cast, whatever the default dtype. The last lookup is mostly the
    next one, and is recognized without a key: half the cost of a lookup.

    Attributes:
        latest: the operands' types (classes of numbers), the rules, and the entry found.
    """

    __slots__ = ("latest",)
    latest: tuple[Any, Any, Any, Found | None]

    def __init__(self) -> None:
        self.latest = (None, None, None, None)

    def find(self, x: TensorType, y: Any, rules: promotion.Rules) -> Found | None:
        """The entry for operands of type `x` and of type, or class, `y`."""
        found = self.get((rules, id(x), id(y) if type(y) is TensorType else y))
        if found is not None:
            self.latest = (x, y, rules, found)
        return found

    def clear(self) -> None:
        """Forget them all."""
        self.latest = (None, None, None, None)
        super().clear()


_plans: Final[dict[Op, Plans]] = {}


def plans_of(op: Op) -> Plans:
    """The cached plans of an elementwise operation."""
    found = _plans.get(op)
    if found is None:
        found = _plans[op] = Plans()
        further_plans.append(found)
    return found


def unary(op: Op, x: Any, floats: bool = False) -> Any:
    """A unary elementwise operation; with `floats`, integers become floating-point first."""
    like = x if isinstance(x, Handle) else None
    lazy = lazy_of(x)
    dtype = lazy.type.dtype
    if floats and not dtype.is_inexact:
        lazy = cast(lazy, (promotion.TORCH if like is None else like.rules).floating(dtype))
    elif trace.now.autocast is None:
        plans_of(op)[id(lazy.type)] = op_plan(op, (lazy.type,), {}), None
    return wrap(record(op, (lazy,), {})[0], like)


_NUMBERS: Final = frozenset({bool, int, float, complex})
# What operations that take no booleans do with two of them
_OF_BOOLS: Final = {
    REGISTRY["add"]: REGISTRY["logical_or"],
    REGISTRY["multiply"]: REGISTRY["logical_and"],
    REGISTRY["maximum"]: REGISTRY["logical_or"],
    REGISTRY["minimum"]: REGISTRY["logical_and"],
}
_SUBTRACT: Final = REGISTRY["subtract"]
_ORDERINGS: Final = frozenset(
    {REGISTRY[name] for name in ("less", "less_equal", "greater", "greater_equal")}
)
_COMPARISONS: Final = _ORDERINGS | {REGISTRY["equal"], REGISTRY["not_equal"]}


def binary(op: Op, x: Any, y: Any, floats: bool = False) -> Any:
    """A binary elementwise operation, with dtype promotion; numbers are inputs.

    Args:
        floats: integers become floating-point first, as in a division.
    """
    like = x if isinstance(x, Handle) else y if isinstance(y, Handle) else None
    rules = promotion.TORCH if like is None else like.rules
    a, kind_a = _operand(x, like is not None, rules)
    b, kind_b = _operand(y, True, rules)
    dtype, called, plan = _plan_binary(op, a, b, floats, rules)
    if op in _COMPARISONS and dtype.is_floating and _are_whole(a, b):
        return _compared.on(like, a, b, name=op.name)
    if dtype is float16 and rules.wraps and any([lacks(z) for z in (a, b) if type(z) in _NUMBERS]):
        wide = [wrap(cast(z, float32), like) if isinstance(z, Lazy) else z for z in (a, b)]
        found = binary(op, wide[0], wide[1], floats)
        return found if found.lazy.type.dtype is bool_ else wrap(cast(found.lazy, dtype), like)
    bare = [kind for kind in (kind_a, kind_b) if kind in _NUMBERS]
    exact = op in _COMPARISONS and int in bare and dtype.is_integer and not rules.wraps
    if exact:
        a, b, dtype = _beyond(a, b, dtype)
    elif plan is not None and any([isinstance(z, Lazy) and z.type.dtype is dtype for z in (a, b)]):
        numbers = numbers_beside(dtype, bare[0], rules) if bare else None
        plans_of(op)[rules, kind_a, kind_b] = plan, numbers  # whatever the default dtype is
    if kind_a in _NUMBERS:
        a = number(a, dtype, rules)
    if kind_b in _NUMBERS:
        b = number(b, dtype, rules)
    return wrap(record(called, (cast(a, dtype), cast(b, dtype)), {})[0], like)


def _are_whole(a: Any, b: Any) -> bool:
    return all([isinstance(x, Lazy) and x.type.dtype.is_integer for x in (a, b)])


def _beyond(a: Any, b: Any, dtype: DType) -> tuple[Any, Any, DType]:
    """A number to compare with: infinity in place of an integer that `dtype` cannot hold."""
    limits = np.iinfo(dtype.numpy)
    pair = [
        x if isinstance(x, Lazy) or limits.min <= x <= limits.max else math.copysign(math.inf, x)
        for x in (a, b)
    ]
    return pair[0], pair[1], float64 if any([isinstance(x, float) for x in pair]) else dtype


def _operand(x: Any, bare: bool, rules: promotion.Rules) -> tuple[Any, Any]:
    """A value (or a Python number itself, if it may stay `bare`) and a key for its type."""
    if bare and type(x) in _NUMBERS:
        return x, type(x)
    lazy = lazy_of(x, None, rules)
    return lazy, id(lazy.type)


def _plan_binary(
    op: Op, a: Any, b: Any, floats: bool, rules: promotion.Rules
) -> tuple[DType, Op, Plan | None]:
    """The common dtype, the operation, and the plan if no operand needs a cast."""
    dtype = common_type([a, b], rules)
    if floats:
        dtype = rules.floating(dtype)
    if op is _SUBTRACT and rules is promotion.TORCH:
        check_truths(a, b)
    if dtype is bool_:
        op = _OF_BOOLS.get(op, op)
        dtype = uint8 if op in _ORDERINGS else dtype
    if any(x.type.dtype is not dtype for x in (a, b) if isinstance(x, Lazy)):
        return dtype, op, None
    kinds = [x.type if isinstance(x, Lazy) else intern(dtype, ()) for x in (a, b)]
    return dtype, op, op_plan(op, kinds, {})


def check_truths(*xs: Any) -> None:
    """Refuse subtraction with booleans, as PyTorch does.

    Raises:
        DTypeError: one of the tensors, values or numbers is boolean.
    """
    for x in xs:
        lazy = x.lazy if isinstance(x, Handle) else x
        if x is True or x is False or (isinstance(lazy, Lazy) and lazy.type.dtype is bool_):
            raise DTypeError(
                "subtract: expected numbers, got booleans; use logical_xor() of two of them, "
                f"~x for 1 - x, and call float() or int() on them otherwise{at_user_line()}"
            )


def common_type(operands: Sequence[Any], rules: promotion.Rules) -> DType:
    """The dtype to which values and bare Python numbers are promoted."""
    lazies = [x for x in operands if isinstance(x, Lazy)]
    numbers = [x for x in operands if not isinstance(x, Lazy)]
    dtype = rules.result([x.type for x in lazies]) if lazies else bool_
    for x in numbers:
        dtype = rules.number(x, dtype)
    return dtype


def promoted(*xs: Any, floats: bool = False) -> list[Lazy]:
    """Tensors, arrays and numbers as values of their common dtype.

    Args:
        floats: integers become floating-point.
    """
    like = kind_of(*xs)
    if like is not None:
        kind = like.lazy.type.dtype
        if kind.is_floating or not floats:
            same = [x.lazy for x in xs if isinstance(x, Handle)]
            if len(same) == len(xs) and all([x.type.dtype is kind for x in same]):
                return same
    rules = promotion.TORCH if like is None else like.rules
    operands = [x if type(x) in _NUMBERS else lazy_of(x, None, rules) for x in xs]
    dtype = common_type(operands, rules)
    if floats:
        dtype = rules.floating(dtype)
    return [cast(x, dtype) if isinstance(x, Lazy) else number(x, dtype, rules) for x in operands]


# Functions of graph values


class Recorded:
    """A function of graph values as a function of tensors, recorded as one call.

    Positional arguments are tensors (or arrays, numbers, or `None` if omitted); keywords are
    static: hashable, and part of the program's structure.
    """

    def __init__(
        self, function: Callable[..., Any], differentiable: bool, rows: bool,
        autocast: Autocast | None = None,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self.autocast = autocast or declared(function)
        self.function = function
        self.differentiable = differentiable
        self.rows = rows

    def plan(self, lazies: Sequence[Lazy | None], static: dict[str, Any]) -> Plan:
        """The plan for inputs of these types."""
        present = tuple([x is not None for x in lazies])
        function = self.function if all(present) else _with_gaps(self.function, present)
        types = [x.type for x in lazies if x is not None]
        return function_plan(function, types, static, self.differentiable, self.rows)

    def record(self, xs: Sequence[Any], static: dict[str, Any]) -> tuple[Lazy, ...]:
        """Record a call; the values of its results."""
        lazies = [
            x.lazy if isinstance(x, Handle) else None if x is None else lazy_of(x) for x in xs
        ]
        now = trace.now
        low: DType | None = now.autocast
        if low is not None:
            lazies = self._cast(lazies, low)
        if None in lazies:
            plan = self.plan(lazies, static)
        else:
            types = [x.type for x in lazies if x is not None]
            plan = function_plan(self.function, types, static, self.differentiable, self.rows)
        return now.record(plan, tuple([x for x in lazies if x is not None]))

    def _cast(self, lazies: list[Lazy | None], low: DType) -> list[Lazy | None]:
        given = [x.type.dtype for x in lazies if x is not None]
        wanted = iter(input_dtypes(self.autocast, given, low))
        return [None if x is None else cast(x, next(wanted)) for x in lazies]

    def __call__(self, *xs: Any, **static: Any) -> Any:
        """Record a call; returns a tensor, or a tuple if the function has several results."""
        return self.on(kind_of(*xs), *xs, **static)

    def on(self, like: Any, *xs: Any, **static: Any) -> Any:
        """Record a call whose results take the class of the tensor `like`."""
        found = self.record(xs, static)
        if len(found) == 1:
            return wrap(found[0], like)
        return tuple([wrap(y, like) for y in found])


@functools.lru_cache(maxsize=1024)
def _with_gaps(function: Callable[..., Any], present: tuple[bool, ...]) -> Callable[..., Any]:
    """`function`, called with `None` for omitted arguments."""

    @functools.wraps(function)
    def filled(*values: Any, **static: Any) -> Any:
        given = iter(values)
        return function(*[next(given) if p else None for p in present], **static)

    return filled


def recorded(
    function: Callable[..., Any] | None = None, *, differentiable: bool = True, rows: bool = False,
    autocast: Autocast | None = None, looks_up: bool = False,
) -> Any:  # fmt: skip
    """Turn a function of graph values (`weft.ops`) into one of tensors, recorded as one call.

    Args:
        differentiable: whether gradients flow through it.
        rows: whether it takes row-sparse values (`weft.ops.RowSparse`) as they are.
        autocast: its dtype under mixed precision, if the function does not declare it; by default
            the widest of its inputs' dtypes.
        looks_up: whether it takes indices and a table whose gradient is row-sparse.
    """
    if function is None:
        return functools.partial(
            recorded, differentiable=differentiable, rows=rows, autocast=autocast,
            looks_up=looks_up,
        )  # fmt: skip
    if looks_up:
        vars(function)["looks_up"] = True  # also set for plans of a wrapped function
    return Recorded(function, differentiable, rows, autocast)


def looks_up(plan: Plan) -> bool:
    """Whether it is a call of (indices, table, ...) with a row-sparse gradient of the table."""
    return bool(getattr(plan.called, "looks_up", False))


_compared: Final = recorded(whole_comparison, differentiable=False)
