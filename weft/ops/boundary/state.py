"""Sources and effects of a graph: feeds, constants, variables, counters, Python calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from weft.errors import (
    DivisionError,
    DTypeError,
    GraphError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
    UserOpError,
)
from weft.ir.dtype import DType, as_dtype, string, uint64
from weft.ir.node import Literal, Node, Value
from weft.ir.shape import Shape, compatible, show
from weft.ops.declaration import (
    HOSTED,
    NO_GRADIENT,
    Alias,
    Array,
    Boundary,
    Case,
    Face,
    Opaque,
    Out,
    constant_of,
    defop,
)
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import CHEAP, Autocast, Batching, Facts
from weft.ops.declaration.rule import attribute_shape, same, same_shape, scalar_shape, to_dtype

__all__ = ["constant"]


class LinAlgError(UserOpError, np.linalg.LinAlgError):
    """A matrix has no inverse or factor, or an iteration did not converge."""


def no_cases() -> Iterable[Case]:
    """For operations that cannot run alone; the interpreter's tests cover them."""
    return ()


def from_outside(*_: Array, **__: Any) -> Array:
    """The reference of an operation that the runner of a graph provides itself."""
    raise GraphError("expected a value from the runner of the graph")


placeholder = defop(
    "placeholder",
    inputs="",
    attrs={"dtype": REQUIRED, "shape": None},
    dtype=to_dtype,
    shape=lambda *, shape, **_: shape,
    reference=from_outside,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    partial=True,
)


CONSTANT: Final = defop(
    "constant",
    inputs="",
    attrs={"value": REQUIRED},
    dtype=lambda *, value: string if value.array.dtype.hasobject else as_dtype(value.array.dtype),
    shape=lambda *, value: value.array.shape,
    reference=lambda *, value: value.array,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=lambda: (Case((), {"value": Literal(np.arange(6.0).reshape(2, 3))}),),
    facts=CHEAP,
)


def constant(value: Any, dtype: Any = None, name: str | None = None) -> Value:
    """A constant from a number, nested lists, an array or a `Literal`.

    Bare numbers become float32 or int64 unless `dtype` says otherwise.

    Raises:
        DTypeError: bare numbers that `dtype` cannot hold.
    """
    array = value.array if isinstance(value, Literal) else value
    kind = None if dtype is None else as_dtype(dtype)
    if kind is not None and isinstance(array, np.ndarray | np.generic):
        array = np.asarray(array).astype(kind.numpy)
    return constant_of(array, kind, name)


variable = defop(
    "variable",
    inputs="",
    attrs={"key": REQUIRED, "dtype": REQUIRED, "shape": REQUIRED},
    dtype=to_dtype,
    shape=attribute_shape,
    reference=from_outside,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    partial=True,
)


def key_of(node: Node) -> str:
    """The key of the variable that a node reads or assigns.

    Raises:
        GraphError: its first input is no variable.
    """
    key: str | None = node.inputs[0].node.attrs.get("key")
    if key is None:
        given = node.inputs[0].node.describe()
        raise GraphError(f"{node.op}: expected a variable, got {given}: {node.describe()}")
    return key


def _passed_on() -> Iterator[Case]:
    for dtype in (np.float32, np.bool_, np.int64):
        yield Case((np.arange(6).reshape(2, 3).astype(dtype),))
    yield Case((np.zeros((0, 2), np.float32),))


read = defop(
    "read",
    inputs="variable",
    attrs={"latest": False},  # True: see all earlier assignments, even without an edge
    dtype=same,
    shape=same_shape,
    reference=lambda x, **_: x,
    vjp=lambda g, y, x, **_: (g,),
    lower=Alias(),
    cases=no_cases,
    stateful=True,
    partial=True,
    facts=Facts(keeps_rows=True),
)


def _assigned_shape(variable: Shape, value: Shape) -> Shape:
    if not compatible(variable, value):
        raise ShapeError(f"expected a value of shape {show(variable)}, got {show(value)}")
    return same_shape(variable, value)


def _assigned_dtype(variable: DType, value: DType) -> DType:
    if variable is not value:
        raise DTypeError(f"expected a value of type {variable}, got {value}")
    return variable


assign = defop(
    "assign",
    inputs="variable value",
    dtype=_assigned_dtype,
    shape=_assigned_shape,
    reference=lambda variable, value: value,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    stateful=True,
    partial=True,
)

counter = defop(
    "counter",
    inputs="",
    attrs={"key": REQUIRED, "start": 0},
    dtype=lambda **_: uint64,
    shape=scalar_shape,
    reference=from_outside,
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    stateful=True,
)


def first_count(start: int | None) -> int:
    """The number at which a counter starts: `start`, or a random one if that is `None`."""
    return int.from_bytes(os.urandom(7), "little") if start is None else start


group = defop(
    "group",
    inputs="",
    dtype=lambda: (),
    shape=lambda: (),
    reference=lambda: (),
    vjp=NO_GRADIENT,
    lower=Boundary(),
    cases=no_cases,
    outputs=0,
    stateful=True,
)

identity = defop(
    "identity",
    inputs="x",
    dtype=same,
    shape=same_shape,
    reference=lambda x: x,
    vjp=lambda g, y, x: (g,),
    lower=Alias(),
    cases=_passed_on,
    partial=True,
    facts=Facts(keeps_rows=True, batching=Batching.LEADING),
    face=Face("A tensor equal to another.", "[1, -2] -> [ 1, -2]",
              torch="positive", numpy="positive", out=Out.EXACT),
)  # fmt: skip

stop_gradient = defop(
    "stop_gradient",
    inputs="x",
    dtype=same,
    shape=same_shape,
    reference=lambda x: x,
    vjp=lambda g, y, x: (None,),
    lower=Alias(),
    cases=lambda: (Case((np.arange(3.0),), differentiate=False),),
    partial=True,
    facts=Facts(view=True, batching=Batching.LEADING),
)


def called(*xs: Any, function: Callable[..., Any], dtypes: Any, **_: Any) -> tuple[Array, ...]:
    """The results of a user's function, which may keep or change what it is given.

    Raises:
        UserOpError: it raised, or gave something else than these types.
    """
    try:
        found = function(*[np.array(x) if isinstance(x, np.ndarray) else x for x in xs])
    except np.linalg.LinAlgError as error:
        raise LinAlgError(str(error)) from error
    except (DivisionError, OutOfRangeError, ShapeError, OutOfMemoryError, RecursionError):
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"the function raised MemoryError: {error}") from error
    except Exception as error:
        message = f"the function raised {type(error).__name__}: {error}"
        raise UserOpError(message) from error
    several = found if isinstance(found, list | tuple) else (found,)
    if len(several) != len(dtypes):
        raise UserOpError(f"expected {len(dtypes)} results of the function, got {len(several)}")
    return tuple(_result(y, as_dtype(d)) for y, d in zip(several, dtypes, strict=True))


def _result(value: Any, dtype: DType) -> Array:
    if dtype.is_hosted:
        return value
    array = np.asarray(value)
    bare = not isinstance(value, np.ndarray | np.generic)
    if array.dtype != dtype.numpy and not bare:
        raise UserOpError(f"expected a result of type {dtype}, got {array.dtype}")
    try:
        return array.astype(dtype.numpy)
    except (TypeError, ValueError) as error:
        raise UserOpError(f"expected a result of type {dtype}, got {value!r}") from error


def call_vjp(g: Any, y: Any, *xs: Value, gradient: Any, **_: Any) -> Any:
    """The gradient that came with a function of the user's; without one there is none."""
    return (None,) * len(xs) if gradient is None else gradient(g, y, *xs)


NO_AXIS: Final = -1
"""Fills rows of `shapes` up to the length of the longest: as one array they are computed."""


def _shapes(*_: Any, shapes: Any, **__: Any) -> Any:
    return tuple([s and tuple([d for d in s if d != NO_AXIS]) for s in shapes])


host_call = defop(
    "host_call",
    inputs="*xs",
    attrs={
        "function": REQUIRED,
        "dtypes": REQUIRED,
        "shapes": REQUIRED,
        "gradient": None,
        "title": "host_call",
    },
    dtype=lambda *_, dtypes, **__: tuple(map(as_dtype, dtypes)),
    shape=_shapes,
    reference=called,
    vjp=call_vjp,
    lower=Opaque(HOSTED),
    cases=no_cases,
    outputs=-1,
    stateful=True,
    partial=True,
    facts=Facts(autocast=Autocast.KEPT, ordered=True),
)
