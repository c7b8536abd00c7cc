"""Reductions over `axes` (`None`: all of them), with `keepdims` as in NumPy.

Half precision accumulates in float32. A sum of n numbers is within n * eps * sum(|x|) of the exact
one in any order of summation; compiled kernels and references add in blocks, so that errors are
much smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ShapeError
from weft.ir.dtype import DType
from weft.ir.extent import symbolic
from weft.ir.shape import Shape, is_static, known, normal_axes, show
from weft.ops.declaration import (
    NO_GRADIENT,
    Array,
    Case,
    Composite,
    Op,
    Reduce,
    catalogue,
    constant_of,
    defop,
)
from weft.ops.declaration.blocked_reduction import reduced
from weft.ops.declaration.fact import AS_GIVEN, IN_WIDEST, Autocast, Facts
from weft.ops.declaration.numeric import Rule, draw, dtypes_of, special, widened
from weft.ops.declaration.rule import (
    arithmetic,
    boolean,
    concrete,
    floating,
    ordered,
    reduced_shape,
    reshape_like,
    shape_argument,
)
from weft.ops.elementwise.compare import equal
from weft.ops.elementwise.convert import cast

Axes = Sequence[int] | None
REDUCTION: Final[Mapping[str, Any]] = {"axes": None, "keepdims": False}


# Shared parts
def kept(y: Any, x: Any, axes: Axes, keepdims: bool) -> Any:
    """`y`, a reduction of `x` over `axes`, with the reduced axes restored as 1."""
    if keepdims:
        return y
    if is_static(x.shape):
        return catalogue.reshape(y, shape=reduced_shape(x.shape, axes, keepdims=True))
    return reshape_like(y, sum(x, axes=axes, keepdims=True))


def spread(g: Any, x: Any, axes: Axes, keepdims: bool) -> Any:
    """`g`, a cotangent of a reduction of `x`, broadcast to the shape of `x`."""
    return catalogue.broadcast_to(kept(g, x, axes, keepdims), shape=shape_argument(x))


def count(x: Any, axes: Axes) -> int:
    """The number of elements of `x` in each element of its reduction over `axes`.

    Raises:
        ShapeError: a needed dimension is unknown.
    """
    dims = x.shape if x.shape is None else [x.shape[a] for a in normal_axes(axes, len(x.shape))]
    return math.prod(known(None if dims is None else tuple(dims)))


def divisor(number: int, dtype: DType) -> Any:
    """A count by which something of the dtype is divided."""
    return constant_of(number, dtype) if symbolic(number) else float(number)


def normal(x: Shape, *, axes: Axes, **attrs: Any) -> Mapping[str, Any]:
    """Attributes with the axes sorted and not negative."""
    assert x is not None
    return {**attrs, "axes": normal_axes(axes, len(x))}


SHAPES: Final[tuple[tuple[tuple[int, ...], Axes], ...]] = (
    ((3, 5), None), ((3, 5), (0,)), ((2, 3, 4), (-1,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1,)),
    ((), None), ((7, 1), (0,)), ((3, 0), (0,)), ((3, 5), ()), ((2, 3, 4, 5), (1, -1)),
    ((3, 133), (1,)), ((133, 3), (0,)), ((70,), (0,)),
)  # fmt: skip
EMPTY: Final[tuple[tuple[tuple[int, ...], Axes], ...]] = (((0, 3), (0,)), ((3, 0), None))


def reduction_cases(kinds: str, low: float = -3, high: float = 3, empty: bool = False) -> Rule:
    """Cases of a reduction: every shape in float32, a few in the other types of `kinds`."""

    def cases() -> Iterator[Case]:
        for i, dtype in enumerate(dtypes_of(kinds)):
            pairs = (*SHAPES, *(EMPTY if empty else ())) if i == 0 else SHAPES[1:4]
            for n, (shape, axes) in enumerate(pairs):
                x = draw(shape, dtype, low, high)
                bound = x.size * float(np.abs(x).astype(np.float64).sum()) * 6e-8
                yield Case((x,), {"axes": axes, "keepdims": n % 2 == 1}, atol=1e-6 + bound)
        for case in special(2, dtypes_of(kinds), (1.0, -np.inf, np.nan, np.inf, 2.0)):
            yield Case(case.inputs[:1], {"axes": (1,), "keepdims": False}, differentiate=False)
            yield Case(case.inputs[:1], {"axes": None, "keepdims": False}, differentiate=False)

    return cases


def _reduction(
    name: str, combine: str, ufunc: np.ufunc, vjp: Rule, kinds: str, shape: Rule = reduced_shape,
    *, facts: Facts, **options: Any,
) -> Op:  # fmt: skip
    dtype = {"iufc": arithmetic, "biuf": ordered, "b": boolean}[kinds]

    def run(x: Array, axes: Axes, keepdims: bool) -> Array:
        if ufunc in (np.add, np.multiply):
            return reduced(ufunc, x, axes, keepdims)
        axis = None if axes is None else tuple(axes)
        if ufunc.identity is None and not x.size:  # an empty result, as for (0, 0) over one axis
            return ufunc.reduce(x, axis=axis, keepdims=keepdims, initial=x.dtype.type(0))
        return ufunc.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims)

    return defop(
        name, inputs="x", dtype=dtype, shape=shape, reference=widened(run), vjp=vjp,
        lower=Reduce(combine), cases=reduction_cases(kinds, **options), attrs=REDUCTION,
        normal=normal, facts=facts,
    )  # fmt: skip


# Sums and products
def _sum_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    return (spread(g, x, axes, keepdims),)


def _prod_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    """The product of the other factors: those before times those after, correct even with zeros."""
    dims = concrete(x)
    gone = normal_axes(axes, len(dims))
    order = (*[i for i in range(len(dims)) if i not in gone], *gone)
    count = math.prod(dims[i] for i in gone)
    rest = tuple(dims[i] for i in order[: len(dims) - len(gone)])
    rows = catalogue.reshape(catalogue.transpose(x, perm=order), shape=(*rest, count))
    before, after = (
        catalogue.cumprod(rows, axis=len(rest), exclusive=True, reverse=reverse)
        for reverse in (False, True)
    )
    others = catalogue.reshape(before * after, shape=tuple(dims[i] for i in order))
    back = tuple(order.index(i) for i in range(len(dims)))
    return (spread(g, x, axes, keepdims) * catalogue.transpose(others, perm=back),)


sum = _reduction(
    "sum", "add", np.add, _sum_vjp, "iufc", empty=True,
    facts=Facts(autocast=Autocast.FLOAT32, linear=True, cancels=True, fresh=True),
)  # fmt: skip
prod = _reduction(
    "prod", "multiply", np.multiply, _prod_vjp, "iufc",
    low=0.8, high=1.2, empty=True,
    facts=Facts(autocast=Autocast.FLOAT32, fresh=True),
)  # fmt: skip


# Minimum and maximum
def _not_empty(x: Shape, axes: Axes = None, keepdims: bool = False) -> Shape:
    found = reduced_shape(x, axes, keepdims)
    assert x is not None and found is not None
    if 0 in [x[a] for a in normal_axes(axes, len(x))] and 0 not in found and is_static(found):
        raise ShapeError(f"expected at least one element to reduce, got shape {show(x)}")
    return found


def shared(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool) -> Any:
    """The cotangent of a maximum or minimum: equal elements share it, as in TensorFlow."""
    winners = cast(equal(x, kept(y, x, axes, keepdims)), dtype=x.dtype)
    shares = winners / sum(winners, axes=axes, keepdims=True)
    return kept(g, x, axes, keepdims) * shares


def _extreme_vjp(g: Any, y: Any, x: Any, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    return (shared(g, y, x, axes, keepdims),)


max = _reduction(
    "max", "maximum", np.maximum, _extreme_vjp, "biuf", _not_empty,
    facts=Facts(autocast=Autocast.KEPT, fresh=True),
)  # fmt: skip
min = _reduction(
    "min", "minimum", np.minimum, _extreme_vjp, "biuf", _not_empty,
    facts=Facts(autocast=Autocast.KEPT, fresh=True),
)  # fmt: skip


def _elected_shape(x: Shape, y: Shape, batch: int = 0) -> Shape:
    if is_static(x) and is_static(y):
        one, many = known(y), known(x)
        if math.prod(one[batch:]) != 1 or one[:batch] != many[:batch]:
            raise ShapeError(
                f"elected: expected y of one element for each of {show(many[:batch])}, got shape "
                f"{show(y)}"
            )
    return y


def _elected_vjp(g: Any, z: Any, x: Any, y: Any, batch: int) -> tuple[Any, ...]:
    dims = concrete(x)
    beside = (*dims[:batch], *[1] * (len(dims) - batch))
    one, g_one = (catalogue.reshape(v, shape=beside) for v in (y, g))
    missing = catalogue.logical_and(catalogue.isnan(x), catalogue.isnan(one))
    won = cast(catalogue.logical_or(equal(x, one), missing), dtype=x.dtype)
    return won * (g_one / sum(won, axes=tuple(range(batch, len(dims))), keepdims=True)), None


def _elected_cases() -> Iterator[Case]:
    for dtype in dtypes_of("f"):
        x = draw((3, 4), dtype)
        yield Case((x, x[1, 2].copy()), differentiate=False)
        yield Case((x, x[:1, :1].copy()), differentiate=False)
        yield Case((x, x[:, 1].copy()), {"batch": 1}, differentiate=False)


elected = defop(
    "elected", inputs="x y", dtype=floating, shape=_elected_shape,
    reference=lambda x, y, batch: np.array(y), vjp=_elected_vjp, attrs={"batch": 0},
    lower=Composite(lambda x, y, batch: y), cases=_elected_cases,
    facts=IN_WIDEST,
)  # fmt: skip
"""`y`, one element of `x` (for each index of its first `batch` axes).

All elements equal to it share the cotangent; NaN counts as equal to NaN.
"""

any = _reduction("any", "maximum", np.logical_or, NO_GRADIENT, "b", empty=True, facts=AS_GIVEN)
all = _reduction("all", "minimum", np.logical_and, NO_GRADIENT, "b", empty=True, facts=AS_GIVEN)
