"""Covariances and correlations of variables (rows) from observations (columns)."""

from __future__ import annotations

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.autocast import cast_inputs
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import concrete
from weft.ops.shape.diagonal import diagonal


def _total(x: Value) -> Value:
    return catalogue.sum(x, axes=(1,), keepdims=True)


def _products(x: Value, y: Value, low: DType | None) -> Value:
    """The products of rows with conjugated rows."""
    turned = catalogue.transpose(y, perm=(1, 0))
    turned = catalogue.conj(turned) if y.dtype.is_complex else turned
    pair = (x, turned) if low is None else cast_inputs(catalogue.matmul, (x, turned), low)
    return catalogue.matmul(*pair)


@autocasting(Autocast.KEPT)
def covariance(
    x: Value, weights: Value | None, importance: Value | None, *, correction: float,
    low: DType | None = None,
) -> Value:  # fmt: skip
    """The covariance matrix of rows; a scalar for a single row.

    Args:
        weights: the total weight of each observation.
        importance: the part of the weights that is not a frequency.
        correction: the divisor is the number of observations minus this.
        low: the dtype of matmuls under autocast.
    """
    rows, columns = concrete(x)
    if weights is None:
        apart = x - _total(x) / float(columns)
        found = _products(apart, apart, low) / float(max(columns - correction, 0))
        return found if rows != 1 else catalogue.reshape(found, shape=())
    weights = catalogue.reshape(weights, shape=(1, -1))
    mass = catalogue.sum(weights)
    lost = constant_of(correction, mass.dtype)
    if importance is not None:
        lost = lost * catalogue.sum(weights * importance) / mass
    count = catalogue.maximum(mass - lost, constant_of(0, mass.dtype))
    mass, weights = (catalogue.cast(v, dtype=x.dtype) for v in (mass, weights))
    apart = x - _total(x * weights) / mass
    found = _products(apart * weights, apart, low)
    found = found / catalogue.cast(count, dtype=found.dtype)
    return found if rows != 1 else catalogue.reshape(found, shape=())


def correlation(covariances: Value) -> Value:
    """Covariances divided by both standard deviations, from -1 to 1; 1 for a single row."""
    if not concrete(covariances):
        return covariances / covariances
    deviation = catalogue.sqrt(diagonal(covariances))
    column, row = (catalogue.expand_dims(deviation, axis=axis) for axis in (1, 0))
    found = covariances / column / row
    if not found.dtype.is_complex:
        return _limited(found)
    parts = catalogue.real(found), catalogue.imag(found)
    return catalogue.complex(*[_limited(part) for part in parts])


def _limited(x: Value) -> Value:
    return catalogue.clip(x, constant_of(-1, x.dtype), constant_of(1, x.dtype))
