"""Covariances and correlations of variables, a row each, of which columns are observations."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.base import catalogue, constant_of
from weft.ops.declaration.rule import concrete
from weft.ops.shape.diagonal import diagonal


def _total(x: Value) -> Value:
    return catalogue.sum(x, axes=(1,), keepdims=True)


def _adjoint(x: Value) -> Value:
    turned = catalogue.transpose(x, perm=(1, 0))
    return catalogue.conj(turned) if x.dtype.is_complex else turned


def covariance(
    x: Value, weights: Value | None, importance: Value | None, *, correction: float
) -> Value:
    """The covariances of rows; a number for a single one.

    Args:
        weights: how much each observation counts in all.
        importance: the part of the weights that does not say how often observations occur.
        correction: how many observations fewer the mean counts.
    """
    rows, columns = concrete(x)
    if weights is None:
        apart = x - _total(x) / float(columns)
        found = catalogue.matmul(apart, _adjoint(apart)) / float(max(columns - correction, 0))
        return found if rows != 1 else catalogue.reshape(found, shape=())
    weights = catalogue.reshape(weights, shape=(1, -1))
    mass = catalogue.sum(weights)
    lost = constant_of(correction, mass.dtype)
    if importance is not None:
        lost = lost * catalogue.sum(weights * importance) / mass
    count = catalogue.maximum(mass - lost, constant_of(0, mass.dtype))
    kind = x.dtype
    mass, count, weights = (catalogue.cast(v, dtype=kind) for v in (mass, count, weights))
    apart = x - _total(x * weights) / mass
    found = catalogue.matmul(apart * weights, _adjoint(apart)) / count
    return found if rows != 1 else catalogue.reshape(found, shape=())


def correlation(covariances: Value) -> Value:
    """Covariances over the deviations of both variables, from -1 to 1; 1 of a single one."""
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
