"""`jax.scipy.sparse.linalg`: conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.eager.tensor.dispatch import recorded
from weft.jax.flatten_util import ravel_pytree
from weft.jax.lax.control import custom_linear_solve, while_loop
from weft.jax.numpy import api as _numpy
from weft.jax.transform import arrays
from weft.ops.linalg import iterative as steps
from weft.ops.linalg.product import vdot

__all__ = ["bicgstab", "cg"]

jnp: Any = _numpy
Map = Callable[[Any], Any]
_limit, _is_above = recorded(steps.limit), recorded(steps.is_above)
_residual, _dot = recorded(steps.residual), recorded(vdot)
_step, _direction = recorded(steps.conjugate_step), recorded(steps.conjugate_direction)
_ahead, _half = recorded(steps.stabilized_direction), recorded(steps.stabilized_half)
_second = recorded(steps.stabilized_step)


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
    maxiter: int | None = None, M: Map | None = None,
) -> tuple[Any, None]:  # fmt: skip
    """The solution of a positive definite system by conjugate gradients, and `None`.

    Args:
        A: a matrix, or a function that multiplies by it.
        tol, atol: the residual's norm goes below `max(tol * norm(b), atol)`.
        maxiter: ten times the number of unknowns by default.
        M: multiplies by an approximate inverse.
    """

    def iterate(multiply: Map, inverse: Map, right: Any, x: Any, least: Any, most: int) -> Any:
        r = _residual(right, multiply(x))
        z = inverse(r)

        def step(state: Any) -> Any:
            x, r, k, p, rz = state
            x, r = _step(x, r, p, rz, multiply(p))
            return x, r, k + 1, *_direction(p, rz, r, inverse(r))

        return while_loop(_going(least, most), step, (x, r, 0, z, _dot(r, z)))[0]

    return _solved(iterate, A, b, x0, tol, atol, maxiter, M, symmetric=True)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
    maxiter: int | None = None, M: Map | None = None,
) -> tuple[Any, None]:  # fmt: skip
    """The solution of a system by stabilized biconjugate gradients, and `None`; as `cg`."""

    def iterate(multiply: Map, inverse: Map, right: Any, x: Any, least: Any, most: int) -> Any:
        first = _residual(right, multiply(x))
        zero, one = jnp.zeros_like(first), jnp.ones((), right.dtype)

        def step(state: Any) -> Any:
            x, r, k, *before = state
            p, rho = _ahead(first, r, *before)
            ahead = inverse(p)
            v = multiply(ahead)
            s, alpha = _half(first, r, v, rho)
            near = inverse(s)
            x, r, omega = _second(x, ahead, near, s, multiply(near), alpha)
            return x, r, k + 1, p, v, rho, alpha, omega

        return while_loop(_going(least, most), step, (x, first, 0, zero, zero, one, one, one))[0]

    return _solved(iterate, A, b, x0, tol, atol, maxiter, M, symmetric=False)


def _going(least: Any, most: int) -> Callable[[Any], Any]:
    return lambda state: _is_above(state[1], least) & (state[2] < most)


def _solved(
    iterate: Callable[..., Any], A: Any, b: Any, x0: Any, tol: float, atol: float,
    maxiter: int | None, M: Map | None, symmetric: bool,
) -> tuple[Any, None]:  # fmt: skip
    """A solver on vectors for any structure of arrays, with the gradient of a linear solve."""
    right, back = ravel_pytree(arrays(b))
    start = jnp.zeros_like(right) if x0 is None else ravel_pytree(arrays(x0))[0]
    most = int(10 * right.size if maxiter is None else maxiter)

    def flat(function: Any) -> Map:
        matrix = jnp.asarray(function) if isinstance(function, np.ndarray | list) else function
        multiply = function if callable(function) else lambda x: matrix @ x
        return lambda v: ravel_pytree(multiply(back(v)))[0]

    inverse = flat(M or (lambda x: x))

    def solve(multiply: Map, right: Any) -> Any:
        least = _limit(right, tol=tol, atol=atol)
        return iterate(multiply, inverse, right, start, least, most)

    found = custom_linear_solve(flat(A), right, solve, solve, symmetric=symmetric)
    return back(found), None
