"""Quasi-Newton methods: curvature from the gradients of two points."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.linalg.matrix import H, column, dims, eye, mm, row


def direction(inverse: Value, slope: Value) -> tuple[Value, Value]:
    """The way down by an inverse Hessian matrix, and the slope along it."""
    way = -catalogue.matmul(inverse, column(slope))
    way = catalogue.reshape(way, shape=slope.shape)
    return way, catalogue.sum(way * slope)


def bfgs(inverse: Value, step: Value, change: Value) -> Value:
    """The inverse Hessian matrix after a step that changed the gradient; as before if that is flat.

    Source: Nocedal and Wright, "Numerical Optimization", 2006, (6.17).
    """
    curve = catalogue.sum(step * change)
    flat = catalogue.less_equal(curve, 1e-10)
    part = 1.0 / catalogue.select(flat, 1.0, curve)
    left = eye(dims(inverse)[-1], inverse.dtype) - mm(column(step), row(change)) * part
    found = mm(left, inverse, H(left)) + mm(column(step), row(step)) * part
    return catalogue.select(flat, inverse, found)
