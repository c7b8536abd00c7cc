"""`jax.scipy.optimize`: BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError
from weft.jax.numpy import api as _numpy
from weft.jax.transform import jit, value_and_grad
from weft.ops.optimizer import quasi_newton

jnp: Any = _numpy
_bfgs = recorded(quasi_newton.bfgs)
_direction = recorded(quasi_newton.direction)

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
        way, down = _direction(inverse, slope)
        if float(down) >= 0:
            inverse = eye
            way, down = _direction(inverse, slope)
        size, least, enough = 1.0, float(value), 1e-4 * float(down)
        new, new_slope = both(x + way)
        calls += 1
        while not float(new) <= least + enough * size and size > 1e-10:
            size /= 2
            new, new_slope = both(x + way * size)
            calls += 1
        if size <= 1e-10:
            break
        step = way * size
        inverse = _bfgs(inverse, step, new_slope - slope)
        x, value, slope, turn = x + step, new, new_slope, turn + 1
    done = float(jnp.max(jnp.abs(slope))) <= limit
    status = jnp.array(0 if done else 1 if turn >= most else 3)
    return OptimizeResults(
        x, jnp.array(done), status, value, slope, inverse, jnp.array(calls), jnp.array(calls),
        jnp.array(turn),
    )  # fmt: skip
