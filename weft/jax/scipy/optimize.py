"""`jax.scipy.optimize`: BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.errors import ArgumentError
from weft.jax import numpy as _numpy
from weft.jax.transform import jit, value_and_grad

jnp: Any = _numpy

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """What was found."""

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str = "BFGS",
    tol: float | None = None, options: Any = None,
) -> OptimizeResults:  # fmt: skip
    """The minimum of a function of a vector, by BFGS with a backtracking line search.

    It reads values, so it cannot be traced. (Nocedal and Wright, "Numerical Optimization", 2006,
    algorithm 6.1.)

    Args:
        tol: the largest element of the gradient at the end, 1e-5 by default.
        options: `maxiter`, `gtol`.

    Raises:
        ArgumentError: another method.
    """
    if method.upper() not in ("BFGS", "L-BFGS-EXPERIMENTAL-DO-NOT-RELY-ON-THIS"):
        raise ArgumentError.here(f"minimize: expected method 'BFGS', got {method!r}")
    given = dict(options or {})
    limit = given.get("gtol", 1e-5 if tol is None else tol)
    both = jit(value_and_grad(lambda x: fun(x, *args)))
    x = jnp.asarray(x0, float)
    n = x.shape[0]
    eye = jnp.eye(n, dtype=x.dtype)
    value, slope = both(x)
    inverse, calls, turn = eye, 1, 0
    most = given.get("maxiter") or n * 200
    while turn < most and float(jnp.max(jnp.abs(slope))) > limit:
        way = -(inverse @ slope)
        down = float(slope @ way)
        if down >= 0:
            inverse, way, down = eye, -slope, -float(slope @ slope)
        step = 1.0
        new, new_slope = both(x + way)
        calls += 1
        while not float(new) <= float(value) + 1e-4 * step * down and step > 1e-10:
            step /= 2
            new, new_slope = both(x + step * way)
            calls += 1
        if step <= 1e-10:
            break
        s, y = step * way, new_slope - slope
        curve = float(s @ y)
        if curve > 1e-10:
            left = eye - jnp.outer(s, y) / curve
            inverse = left @ inverse @ left.T + jnp.outer(s, s) / curve
        x, value, slope, turn = x + s, new, new_slope, turn + 1
    done = float(jnp.max(jnp.abs(slope))) <= limit
    status = jnp.array(0 if done else 1 if turn >= most else 3)
    return OptimizeResults(
        x, jnp.array(done), status, value, slope, inverse, jnp.array(calls), jnp.array(calls),
        jnp.array(turn),
    )  # fmt: skip
