"""`jax.experimental.ode`: `odeint` by Dormand and Prince's method, with the adjoint gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import func
from weft.eager.tensor.dispatch import recorded
from weft.jax.flatten_util import ravel_pytree
from weft.jax.gradient_rule import custom_vjp
from weft.jax.lax.control import scan, while_loop
from weft.jax.numpy import api as _numpy
from weft.jax.transform import arrays
from weft.jax.tree_util import tree_map
from weft.ops.control import runge_kutta as method

jnp: Any = _numpy

__all__ = ["odeint"]

Dynamics = Callable[..., Any]
_stage, _curve, _at, _error_ratio, _next_step, _trial, _first_step = map(
    recorded,
    (
        method.stage, method.curve, method.at, method.error_ratio, method.next_step, method.trial,
        method.first_step,
    ),
)  # fmt: skip


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
    within = {"rtol": rtol, "atol": atol}
    f0 = f(y0, ts[0])
    h0, *moved = _trial(y0, f0, ts[0], **within)
    step = _first_step(y0, f0, h0, f(*moved), longest=hmax, **within)
    curve = jnp.stack([y0] * 5)

    def until(carry: Any, end: Any) -> Any:
        def goes_on(state: Any) -> Any:
            i, _, _, t, dt, *_ = state
            return (t < end) & (i < mxstep) & (dt > 0)

        def turn(state: Any) -> Any:
            i, y, slope, t, dt, last, curve = state
            new, after, k = _stages(f, y, slope, t, dt)
            ratio = _error_ratio(y, new, dt, *k, **within)
            taken = ratio <= 1.0
            old = (y, slope, t, last, curve)
            fresh = (new, k[-1], after, t, _curve(y, new, dt, *k))
            y, slope, t, last, curve = tree_map(lambda a, b: jnp.where(taken, a, b), fresh, old)
            return [i + 1, y, slope, t, _next_step(dt, ratio, longest=hmax), last, curve]

        _, *rest = while_loop(goes_on, turn, [jnp.array(0.0, y0.dtype), *carry])
        _, _, t, _, last, curve = rest
        return rest, _at(curve, end, last, t)

    carry = [y0, f0, ts[0], step, ts[0], curve]
    _, ys = scan(until, carry, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _stages(f: Callable[[Any, Any], Any], y: Any, slope: Any, t: Any, dt: Any) -> Any:
    """The state and time after a step, and the slopes of all stages."""
    k, new, time = [slope], y, t
    for _ in method.STAGES:
        new, time = _stage(y, t, dt, *k)
        k.append(f(new, time))
    return new, time, k
