"""Softmax, log-softmax, and dropout with a given mask.

Softmax expands into reductions and elementwise steps over the last axis, which fuse into one
kernel. Half precision is computed in float32 throughout and rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Dims, Shape, normal_axis
from weft.ops.declaration import Array, Case, Composite, Elementwise, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.blocked_reduction import reduced
from weft.ops.declaration.fact import Autocast, Batching, Facts
from weft.ops.declaration.numeric import FLOATS, Rule, draw, fitted, special, widened
from weft.ops.declaration.rule import broadcast_shape, floating
from weft.ops.elementwise.transcendental import exp, log
from weft.ops.reduction import reduce
from weft.ops.reduction.statistic import in_float32


# softmax(x) = exp(x) / sum(exp(x)) along an axis, and its logarithm
def _same_shape(x: Shape, axis: int) -> Shape:
    assert x is not None
    normal_axis(axis, len(x))
    return x


def _normal(x: Dims, axis: int) -> Mapping[str, Any]:
    return {"axis": normal_axis(axis, len(x))}


def _shifted(x: Value, axis: int) -> Value:
    return x - reduce.max(x, axes=(axis,), keepdims=True)


def _softmax_expand(x: Value, axis: int) -> Value:
    if x.shape is not None and 0 in x.shape:
        return x
    e = exp(_shifted(x, axis))
    return e / reduce.sum(e, axes=(axis,), keepdims=True)


def _log_softmax_expand(x: Value, axis: int) -> Value:
    if x.shape is not None and 0 in x.shape:
        return x
    shifted = _shifted(x, axis)
    return shifted - log(reduce.sum(exp(shifted), axes=(axis,), keepdims=True))


def _fast_log_softmax(x: Array, axis: int) -> Array:
    if not x.size:
        return x
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(reduced(np.add, np.exp(shifted), (axis,), True))


def _fast_softmax(x: Array, axis: int) -> Array:
    if not x.size:
        return x
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / reduced(np.add, e, (axis,), True)


def _softmax_vjp(g: Any, y: Any, x: Any, axis: int) -> tuple[Any, ...]:
    return ((g - reduce.sum(g * y, axes=(axis,), keepdims=True)) * y,)


def _log_softmax_vjp(g: Any, y: Any, x: Any, axis: int) -> tuple[Any, ...]:
    return (g - exp(y) * reduce.sum(g, axes=(axis,), keepdims=True),)


_SOFTMAX_SHAPES: Final = (
    ((3, 5), -1), ((7, 10), -1), ((4,), 0), ((2, 3, 4), 1), ((3, 5), 0), ((5, 1), -1),
    ((2, 133), -1), ((0, 4), -1), ((4, 0), -1), ((2, 1000), -1),
)  # fmt: skip


def _softmax_cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for shape, axis in _SOFTMAX_SHAPES[: 3 if i else None]:
            small = int(np.prod(shape)) < 500
            x = draw(shape, dtype)
            yield Case((x,), {"axis": axis}, rtol=1e-5, differentiate=small)
    for case in special(2, (types.float32,), (1.0, -np.inf, 1e4, -1e4)):
        yield Case((case.inputs[1],), rtol=1e-5, differentiate=False)


def _softmax(name: str, expand: Rule, fast: Rule, vjp: Rule) -> Any:
    def reference(x: Array, axis: int) -> Array:
        return fast(x.astype(np.float64), axis).astype(x.dtype)

    return defop(
        name, inputs="x", attrs={"axis": -1}, dtype=floating, shape=_same_shape,
        reference=widened(reference), vjp=vjp, lower=Composite(in_float32(expand)),
        cases=_softmax_cases, normal=_normal, fast=fast,
        facts=Facts(autocast=Autocast.FLOAT32, batching=Batching.AXIS),
    )  # fmt: skip


softmax = _softmax("softmax", _softmax_expand, _fast_softmax, _softmax_vjp)
log_softmax = _softmax("log_softmax", _log_softmax_expand, _fast_log_softmax, _log_softmax_vjp)


# dropout(x, mask) = x / (1 - rate) where the mask is true, else 0
def _dropout_dtype(x: DType, mask: DType, **_: Any) -> DType:
    if mask is not types.bool_:
        raise DTypeError(f"expected a bool mask, got {mask}")
    return floating(x)


def _keep_scale(rate: float) -> float:
    return 0.0 if rate >= 1 else 1 / (1 - rate)


def _dropout_rule(b: Any, x: Any, mask: Any, rate: float) -> Any:
    return b.select(mask, x * _keep_scale(rate), b.const(0, x.dtype))


@widened
def _dropout_reference(x: Array, mask: Array, rate: float) -> Array:
    return np.where(mask, x * x.dtype.type(_keep_scale(rate)), x.dtype.type(0))


@fitted
def _dropout_vjp(g: Any, y: Any, x: Any, mask: Any, rate: float) -> tuple[Any, ...]:
    return dropout(g, mask, rate=rate), None


def _dropout_cases() -> Iterator[Case]:
    for dtype in FLOATS:
        for shape, mask, rate in (
            ((3, 5), (3, 5), 0.5),
            ((2, 3, 4), (2, 1, 4), 0.1),
            ((4,), (), 1),
        ):
            yield Case((draw(shape, dtype), draw(mask, types.bool_)), {"rate": rate})


dropout = defop(
    "dropout",
    inputs="x mask:bool",
    attrs={"rate": REQUIRED},
    dtype=_dropout_dtype,
    shape=broadcast_shape,
    reference=_dropout_reference,
    vjp=_dropout_vjp,
    lower=Elementwise(_dropout_rule),
    cases=_dropout_cases,
    partial=True,
)
