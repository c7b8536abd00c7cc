"""`jax.experimental.ode`: `odeint` by Dormand and Prince's method, with the adjoint gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft import func
from weft.jax import numpy as _numpy
from weft.jax.flatten_util import ravel_pytree
from weft.jax.lax.control import scan, while_loop
from weft.jax.transform import arrays, custom_vjp
from weft.jax.tree_util import tree_map

jnp: Any = _numpy

__all__ = ["odeint"]

Dynamics = Callable[..., Any]
# Dormand and Prince, "A family of embedded Runge-Kutta formulae" (1980), and the middle of a step
# from Shampine, "Some Practical Runge-Kutta Formulas" (1986).
_ALPHA: Final = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_BETA: Final = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR: Final = (
    35 / 384 - 1951 / 21600, 0.0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400, 11 / 84 - 649 / 6300, -1 / 60,
)  # fmt: skip
_MIDDLE: Final = (
    6025192743 / 30085553152 / 2, 0.0, 51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)  # fmt: skip
_SAFETY, _GROWTH, _SHRINKING, _ORDER = 0.9, 10.0, 0.2, 5.0


def odeint(
    func: Dynamics, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8,
    mxstep: float = np.inf, hmax: float = np.inf,
) -> Any:  # fmt: skip
    """The solution of dy/dt = func(y, t, *args) at times `t`, beginning with `y0` at the first.

    Its gradient solves the adjoint equation backwards (Chen et al., "Neural Ordinary Differential
    Equations", 2018).

    Args:
        y0: a pytree of arrays.
        t: increasing times.
        rtol, atol: the error of a step relative to the solution, and absolute.
        mxstep, hmax: the most steps between two times, and the longest.

    Returns:
        A pytree like `y0` with the times along a new first axis.
    """
    start, unravel = ravel_pytree(y0)

    def flat(y: Any, time: Any, *rest: Any) -> Any:
        return ravel_pytree(func(unravel(y), time, *rest))[0]

    options = (float(rtol), float(atol), float(mxstep), float(hmax))
    times = jnp.asarray(t, start.dtype)
    ys = _solution(flat, options, start, times, arrays(args))
    return mapped(unravel, ys)


def mapped(unravel: Callable[[Any], Any], ys: Any) -> Any:
    """The states of all times as pytrees."""
    return func.vmap(lambda y: arrays(unravel(y)))(ys)


def _solution(f: Dynamics, options: Any, y0: Any, ts: Any, args: Any) -> Any:
    @custom_vjp
    def solve(y0: Any, ts: Any, args: Any) -> Any:
        return _integrated(lambda y, t: f(y, t, *args), options, y0, ts)

    def forward(y0: Any, ts: Any, args: Any) -> Any:
        ys = solve(y0, ts, args)
        return ys, (ys, ts, args)

    def backward(kept: Any, g: Any) -> Any:
        ys, ts, args = kept
        flat_args, unravel = ravel_pytree(args)
        n = ys.shape[1]

        def adjoint(state: Any, t: Any) -> Any:
            """How (y, its cotangent, the time's and the arguments') change, backwards in time."""
            y, g = state[:n], state[n : 2 * n]
            dy, pull = func.vjp(lambda y, t, a: f(y, t, *unravel(a)), y, -t, flat_args)
            g_y, g_t, g_a = pull(g)
            return jnp.concatenate([-dy, g_y, g_t.reshape(1), g_a])

        def segment(carry: Any, row: Any) -> Any:
            g_y, g_t0, g_args = carry
            y, t, before, g_now = row
            dot = jnp.dot(f(y, t, *args), g_now)
            state = jnp.concatenate([y, g_y, (g_t0 - dot).reshape(1), g_args])
            span = jnp.stack([-t, -before])
            found = _integrated(adjoint, options, state, span)[1]
            return (found[n : 2 * n], found[2 * n], found[2 * n + 1 :]), dot

        def turn(carry: Any, row: Any) -> Any:
            y, t, before, g_now, g_next = row
            (g_y, g_t, g_a), dot = segment(carry, (y, t, before, g_now))
            return (g_y + g_next, g_t, g_a), dot

        rows = (ys[1:][::-1], ts[1:][::-1], ts[:-1][::-1], g[1:][::-1], g[:-1][::-1])
        first = (g[-1], jnp.zeros((), ts.dtype), jnp.zeros_like(flat_args))
        (g_y, g_t, g_a), dots = scan(turn, first, rows)
        g_ts = jnp.concatenate([g_t.reshape(1), dots[::-1]])
        return g_y, g_ts, unravel(g_a)

    solve.defvjp(forward, backward)
    return solve(y0, ts, args)


def _integrated(f: Callable[[Any, Any], Any], options: Any, y0: Any, ts: Any) -> Any:
    """States at all times."""
    rtol, atol, mxstep, hmax = options
    f0 = f(y0, ts[0])
    step = jnp.clip(_first_step(f, ts[0], y0, rtol, atol, f0), 0.0, hmax)
    curve = jnp.stack([y0] * 5)

    def until(carry: Any, end: Any) -> Any:
        def goes_on(state: Any) -> Any:
            i, _, _, t, dt, *_ = state
            return (t < end) & (i < mxstep) & (dt > 0)

        def turn(state: Any) -> Any:
            i, y, slope, t, dt, last, curve = state
            new, new_slope, error, k = _step(f, y, slope, t, dt)
            ratio = _ratio(error, rtol, atol, y, new)
            fitted = _fitted(y, new, k, dt)
            after = jnp.clip(_next_step(dt, ratio), 0.0, hmax)
            taken = ratio <= 1.0
            old = (y, slope, t, last, curve)
            fresh = (new, new_slope, t + dt, t, fitted)
            y, slope, t, last, curve = tree_map(lambda a, b: jnp.where(taken, a, b), fresh, old)
            return [i + 1, y, slope, t, after, last, curve]

        _, *rest = while_loop(goes_on, turn, [jnp.array(0.0, y0.dtype), *carry])
        _, _, t, _, last, curve = rest
        place = (end - last) / jnp.where(t == last, 1.0, t - last)
        found = curve[0]
        for row in range(1, 5):
            found = found * place + curve[row]
        return rest, found

    carry = [y0, f0, ts[0], step, ts[0], curve]
    _, ys = scan(until, carry, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _step(f: Callable[[Any, Any], Any], y: Any, slope: Any, t: Any, dt: Any) -> Any:
    """The state after a step, its slope, the error, and all slopes."""
    k = [slope]
    new = y
    for a, row in zip(_ALPHA, _BETA, strict=True):
        new = y + dt * _weighted(row, k)
        k.append(f(new, t + dt * a))
    return new, k[-1], dt * _weighted(_ERROR, k), k


def _weighted(weights: Any, k: Any) -> Any:
    parts = [x * w for w, x in zip(weights, k, strict=True) if w]
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def _fitted(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """The polynomial of degree 4 through a step, the highest power first."""
    middle = y0 + dt * _weighted(_MIDDLE, k)
    d0, d1 = k[0], k[-1]
    return jnp.stack([
        -2 * dt * d0 + 2 * dt * d1 - 8 * y0 - 8 * y1 + 16 * middle,
        5 * dt * d0 - 3 * dt * d1 + 18 * y0 + 14 * y1 - 32 * middle,
        -4 * dt * d0 + dt * d1 - 11 * y0 - 5 * y1 + 16 * middle,
        dt * d0,
        y0,
    ])  # fmt: skip


def _ratio(error: Any, rtol: float, atol: float, y0: Any, y1: Any) -> Any:
    """The error over what is allowed."""
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean((error / allowed) ** 2))


def _next_step(dt: Any, ratio: Any) -> Any:
    least = jnp.where(ratio < 1, 1.0, _SHRINKING)
    safe = jnp.where(ratio == 0, 1.0, ratio)
    factor = jnp.minimum(_GROWTH, jnp.maximum(safe ** (-1.0 / _ORDER) * _SAFETY, least))
    return jnp.where(ratio == 0, dt * _GROWTH, dt * factor)


def _first_step(f: Any, t: Any, y: Any, rtol: float, atol: float, slope: Any) -> Any:
    """Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations I" (1993), II.4."""
    scale = atol + jnp.abs(y) * rtol
    d0, d1 = jnp.linalg.norm(y / scale), jnp.linalg.norm(slope / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1.0, d1))
    d2 = jnp.linalg.norm((f(y + h0 * slope, t + h0) - slope) / scale) / h0
    most = jnp.maximum(d1, d2)
    flat = most <= 1e-15
    h1 = jnp.where(
        flat, jnp.maximum(1e-6, h0 * 1e-3),
        (0.01 / jnp.where(flat, 1.0, most)) ** (1.0 / _ORDER),
    )  # fmt: skip
    return jnp.minimum(100.0 * h0, h1)
