"""Steps of iterative solvers of linear systems, on vectors.

Source: Hestenes and Stiefel, "Methods of Conjugate Gradients for Solving Linear Systems", 1952;
van der Vorst, "Bi-CGSTAB", 1992.
"""

from __future__ import annotations

import numpy as np

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.linalg.product import vdot


def limit(b: Value, *, tol: float, atol: float) -> Value:
    """The square of the residual's norm at which a solver stops."""
    least = constant_of(np.array(atol**2, b.dtype.numpy))
    return catalogue.maximum(vdot(b, b) * tol**2, least)


def is_above(r: Value, least: Value) -> Value:
    """Whether the square of a residual's norm is above a limit."""
    return catalogue.greater(vdot(r, r), least)


def residual(b: Value, q: Value) -> Value:
    """What `q` lacks of `b`."""
    return b - q


def conjugate_step(x: Value, r: Value, p: Value, rz: Value, q: Value) -> tuple[Value, Value]:
    """The solution and the residual after a step along `p`, whose product is `q`."""
    size = rz / vdot(p, q)
    return x + size * p, r - size * q


def conjugate_direction(p: Value, rz: Value, r: Value, z: Value) -> tuple[Value, Value]:
    """The next direction of conjugate gradients, and the product of residuals."""
    new = vdot(r, z)
    return z + new / rz * p, new


def stabilized_direction(
    first: Value, r: Value, p: Value, v: Value, rho: Value, alpha: Value, omega: Value
) -> tuple[Value, Value]:
    """The next direction of BiCGSTAB, and the residual's product with the first one."""
    new = vdot(first, r)
    return r + new / rho * alpha / omega * (p - omega * v), new


def stabilized_half(first: Value, r: Value, v: Value, rho: Value) -> tuple[Value, Value]:
    """The residual after the first half of a step, and the size of that."""
    alpha = rho / vdot(first, v)
    return r - alpha * v, alpha


def stabilized_step(
    x: Value, ahead: Value, near: Value, s: Value, t: Value, alpha: Value
) -> tuple[Value, Value, Value]:
    """The solution, the residual and the size of the second half; 1 where that is nothing."""
    size, one = vdot(t, t), constant_of(np.array(1, x.dtype.numpy))
    there = catalogue.greater(size, one * 0)
    omega = catalogue.select(there, vdot(t, s) / catalogue.select(there, size, one), one * 0)
    nothing = catalogue.equal(omega, one * 0)
    found = x + alpha * ahead + omega * near
    return found, s - omega * t, catalogue.select(nothing, one, omega)


def residuals(a: Value, x: Value, b: Value) -> Value:
    """Sums of squares of `b - a @ x`, one a column."""
    rest = b - catalogue.matmul(a, x)
    return catalogue.sum(rest * rest, axes=(0,))
