"""Cross-entropies, numerically stable for all logits; half precision is computed in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from ml_dtypes import finfo

from weft.errors import ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Shape, compatible, known, merge, show
from weft.ops.declaration import Array, Case, Composite, catalogue, constant_of, defop
from weft.ops.declaration.fact import IN_FLOAT32, Autocast, Batching, Facts
from weft.ops.declaration.numeric import FLOATS, binary, draw, widened
from weft.ops.declaration.rule import floating, index_dtype, scalar_shape
from weft.ops.elementwise.arithmetic import multiply, square
from weft.ops.elementwise.compare import equal, select
from weft.ops.elementwise.transcendental import exp, log, sigmoid
from weft.ops.indexing.gather import check_indices
from weft.ops.layer.softmax import log_softmax, softmax
from weft.ops.reduction import reduce
from weft.ops.reduction.statistic import in_float32

_LAST: Final[dict[str, Any]] = {"axes": (-1,), "keepdims": True}


def _row_parts(logits: Value) -> tuple[Value, Value, Value]:
    """Every row's maximum m, logits - m, and log(sum(exp(logits - m)))."""
    m = reduce.max(logits, **_LAST)
    shifted = logits - m
    return m, shifted, log(reduce.sum(exp(shifted), **_LAST))


def _log_softmax(wide: Array) -> Array:
    if not wide.size:
        return wide
    shifted = wide - wide.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


# softmax_cross_entropy(logits, labels) = -sum(labels * log_softmax(logits)), labels summing to 1
def _dense_shape(logits: Shape, labels: Shape) -> Shape:
    if not compatible(logits, labels):
        raise ShapeError(
            f"expected labels of shape {show(logits)} like the logits, got {show(labels)}"
        )
    rows = merge(logits, labels)
    if rows is None:
        return None
    if not rows:
        raise ShapeError("expected logits of rank 1 or more, got shape ()")
    return rows[:-1]


def _fast_dense(logits: Array, labels: Array) -> Array:
    return -np.where(labels == 0, 0, labels * _log_softmax(logits)).sum(axis=-1)


@widened
def _dense_reference(logits: Array, labels: Array) -> Array:
    return _fast_dense(logits.astype(np.float64), labels).astype(logits.dtype)


def _dense_expand(logits: Value, labels: Value) -> Value:
    _, shifted, total = _row_parts(logits)
    zero = constant_of(0, logits.dtype)
    # A label of 0 gives 0 even for a logit of minus infinity.
    losses = select(equal(labels, zero), zero, labels * (total - shifted))
    return reduce.sum(losses, axes=(-1,))


def _dense_vjp(g: Any, y: Any, logits: Any, labels: Any) -> tuple[Any, ...]:
    row = catalogue.expand_dims(g, axis=-1)
    return (softmax(logits) - labels) * row, -log_softmax(logits) * row


_SHAPES: Final = ((3, 5), (7, 10), (2, 3, 4), (6,), (5, 1), (0, 4), (2, 70))


def _dense_cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for shape in _SHAPES[: 2 if i else None]:
            logits = draw(shape, dtype)
            weights = draw(shape, types.float64, 0.1, 1)
            labels = (weights / weights.sum(axis=-1, keepdims=True)).astype(dtype.numpy)
            yield Case((logits, labels), rtol=1e-5, atol=1e-5, differentiate=dtype.size > 2)
    huge = np.array([[1e4, -1e4, 0.0], [-np.inf, 0.0, 1.0]], np.float32)
    yield Case((huge, np.array([[0, 1, 0], [0, 0, 1]], np.float32)), differentiate=False)


softmax_cross_entropy = defop(
    "softmax_cross_entropy",
    inputs="logits labels",
    dtype=floating,
    shape=_dense_shape,
    reference=_dense_reference,
    fast=_fast_dense,
    vjp=_dense_vjp,
    lower=Composite(in_float32(_dense_expand)),
    cases=_dense_cases,
    partial=True,
    facts=Facts(autocast=Autocast.FLOAT32, batching=Batching.LEADING),
)


# sparse_softmax_cross_entropy(logits, labels): the same with one class per row
def _sparse_dtype(logits: DType, labels: DType) -> DType:
    index_dtype(labels, "labels")
    return floating(logits)


def _sparse_shape(logits: Shape, labels: Shape) -> Shape:
    if logits is None:
        return labels
    if not logits or not compatible(logits[:-1], labels):
        raise ShapeError(
            f"expected labels of shape logits.shape[:-1], got logits {show(logits)}"
            f" and labels {show(labels)}"
        )
    return merge(logits[:-1], labels)


def _fast_sparse(logits: Array, labels: Array) -> Array:
    found = check_indices(labels, logits.shape[-1], "labels")
    return -np.take_along_axis(_log_softmax(logits), found[..., None], -1)[..., 0]


@widened
def _sparse_reference(logits: Array, labels: Array) -> Array:
    return _fast_sparse(logits.astype(np.float64), labels).astype(logits.dtype)


def _sparse_expand(logits: Value, labels: Value) -> Value:
    m, _, total = _row_parts(logits)
    rows = known(logits.shape)[:-1]
    chosen = catalogue.gather(logits, labels, axis=-1, batch_dims=len(rows))
    top, logsum = catalogue.reshape(m, shape=rows), catalogue.reshape(total, shape=rows)
    return logsum - (chosen - top)


def _sparse_vjp(g: Any, y: Any, logits: Any, labels: Any) -> tuple[Any, ...]:
    classes = known(None if logits.shape is None else logits.shape[-1:])[0]
    hot = catalogue.one_hot(labels, depth=classes, dtype=logits.dtype)
    return (softmax(logits) - hot) * catalogue.expand_dims(g, axis=-1), None


def _sparse_cases() -> Iterator[Case]:
    for i, dtype in enumerate(FLOATS):
        for shape in _SHAPES[: 2 if i else None]:
            kind = types.int64 if i % 2 else types.int32
            labels = np.asarray(draw(shape[:-1], kind, 0, 100) % shape[-1])
            yield Case((draw(shape, dtype), labels), rtol=1e-5, atol=1e-5)


sparse_softmax_cross_entropy = defop(
    "sparse_softmax_cross_entropy",
    inputs="logits labels:int32",
    dtype=_sparse_dtype,
    shape=_sparse_shape,
    reference=_sparse_reference,
    fast=_fast_sparse,
    vjp=_sparse_vjp,
    lower=Composite(in_float32(_sparse_expand)),
    cases=_sparse_cases,
    partial=True,
    facts=Facts(autocast=Autocast.FLOAT32, batching=Batching.LEADING),
)


# sigmoid_cross_entropy(x, z) = -z * log(sigmoid(x)) - (1 - z) * log(1 - sigmoid(x))
def _binary_rule(b: Any, x: Any, z: Any) -> Any:
    return b.maximum(x, b.const(0, x.dtype)) - x * z + b.log1p(b.exp(-b.abs(x)))


sigmoid_cross_entropy = binary(
    "sigmoid_cross_entropy", _binary_rule, lambda x, z: np.logaddexp(0, x).astype(x.dtype) - x * z,
    lambda g, y, x, z: (g * (sigmoid(x) - z), -g * x), "f",
    specials=(0.0, -0.0, 1.0, -1.0, 30.0, -30.0, np.nan), rtol=1e-5,
    fast=lambda x, z: np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x))), facts=IN_FLOAT32,
)  # fmt: skip


# clamped_cross_entropy(x, z) = -z * log(x) - (1 - z) * log(1 - x), logarithms at least -100
_LEAST_LOG: Final = -100.0


def _clamped_rule(b: Any, x: Any, z: Any) -> Any:
    least = b.const(_LEAST_LOG, x.dtype)
    yes, no = b.maximum(b.log(x), least), b.maximum(b.log1p(-x), least)
    return (z - 1.0) * no - z * yes


def _clamped_reference(x: Array, z: Array) -> Array:
    yes, no = (np.maximum(log, _LEAST_LOG) for log in (np.log(x), np.log1p(-x)))
    return np.asarray((z - 1) * no - z * yes).astype(x.dtype)


def _clamped_vjp(g: Any, y: Any, x: Any, z: Any) -> tuple[Any, ...]:
    """PyTorch's: a wrong certainty has a large gradient, not none, and a right one has none."""
    variance = constant_of(max(1e-12, float(finfo(x.dtype.numpy).tiny)), x.dtype)
    slope = (x - z) / catalogue.maximum(x * (1 - x), variance)
    least = constant_of(_LEAST_LOG, x.dtype)
    yes, no = (catalogue.maximum(v, least) for v in (log(x), catalogue.log1p(-x)))
    return g * slope, g * (no - yes)


clamped_cross_entropy = binary(
    "clamped_cross_entropy", _clamped_rule, _clamped_reference, _clamped_vjp, "f",
    low=0.25, high=0.75, specials=(0.0, 0.25, 1.0, np.nan), rtol=4e-6, facts=IN_FLOAT32,
)  # fmt: skip


# l2_loss(x) = sum(x ** 2) / 2
@widened
def _l2_reference(x: Array) -> Array:
    wide = x.astype(np.float64)
    return np.asarray((wide * wide).sum() / 2).astype(x.dtype)


def _l2_cases() -> Iterator[Case]:
    for dtype in FLOATS:
        for shape in ((3, 5), (), (0,), (129,)):
            yield Case((draw(shape, dtype),), rtol=2e-5)


l2_loss = defop(
    "l2_loss",
    inputs="x",
    dtype=floating,
    shape=scalar_shape,
    reference=_l2_reference,
    vjp=lambda g, y, x: (g * x,),
    lower=Composite(in_float32(lambda x: multiply(reduce.sum(square(x)), 0.5))),
    cases=_l2_cases,
    partial=True,
    facts=IN_FLOAT32,
)
