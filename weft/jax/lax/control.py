"""Branches and loops: those of `weft.func` on JAX's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import func
from weft.errors import WeftError
from weft.jax.array import Array, as_array, weakened
from weft.jax.config import config, without_effect
from weft.jax.numpy import api as _numpy
from weft.jax.transform import arrays, wraps
from weft.jax.tree_util import tree_leaves, tree_map

jnp: Any = _numpy

__all__ = [
    "associative_scan", "cond", "custom_linear_solve", "custom_root", "fori_loop", "map", "scan",
    "switch", "while_loop",
]  # fmt: skip

Function = Callable[..., Any]


def _on(function: Function) -> Function:
    """A function whose results are arrays."""

    @wraps(function)
    def run(*args: Any) -> Any:
        return arrays(function(*args))

    return run


def cond(
    pred: Any, true_fun: Function, false_fun: Function, *operands: Any, operand: Any = None,
    linear: Any = None,
) -> Any:  # fmt: skip
    """`true_fun(*operands)` if `pred` is true, otherwise `false_fun(*operands)`."""
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        # the old form: pred, operand, true_fun, operand, false_fun
        first, true, second, false = true_fun, false_fun, *operands
        return cond(pred, lambda _: true(first), lambda _: false(second), None)
    without_effect("cond", linear=linear)
    if operand is not None:
        operands = (operand,)
    if config.jax_disable_jit:
        return (true_fun if pred else false_fun)(*operands)
    pred = as_array(pred)
    return func.cond(pred, _on(true_fun), _on(false_fun), *arrays(operands))


def switch(index: Any, branches: Sequence[Function], *operands: Any, operand: Any = None) -> Any:
    """`branches[index](*operands)`; the index is clamped."""
    if operand is not None:
        operands = (operand,)
    return func.switch(as_array(index), [_on(b) for b in branches], *arrays(operands))


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """`val = body_fun(val)` while `cond_fun(val)` is true."""
    return func.while_loop(_on(cond_fun), _on(body_fun), arrays(init_val))


def fori_loop(
    lower: Any, upper: Any, body_fun: Function, init_val: Any, *, unroll: Any = None
) -> Any:
    """`val = body_fun(i, val)` for `i` in [lower, upper)."""
    init, start, end = arrays(init_val), _whole(lower), _whole(upper)
    if isinstance(start, int) and isinstance(end, int):

        def step(val: Any, i: Any) -> tuple[Any, None]:
            return arrays(body_fun(i, val)), None

        numbers = jnp.arange(start, max(start, end))
        if type(lower) is type(upper) is int:
            numbers = weakened(numbers)
        return func.scan(step, init, numbers, unroll=unroll or 1)[0]

    def turn(state: Any) -> Any:
        i, val = state
        return i + 1, arrays(body_fun(i, val))

    first, last = jnp.asarray(start).astype("int32"), jnp.asarray(end).astype("int32")
    return func.while_loop(lambda state: state[0] < last, turn, (first, init))[1]


def _whole(x: Any) -> Any:
    """A bound as a Python integer if it is known."""
    if isinstance(x, int | np.integer):
        return int(x)
    try:
        return int(x) if isinstance(x, Array | np.ndarray) else x
    except WeftError:
        return x


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
    unroll: Any = 1, _split_transpose: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`carry, y = f(carry, x)` for each slice of `xs`; the last carry, and all `y` stacked."""
    if config.jax_disable_jit:
        return _scan_by_hand(f, init, xs, length, reverse)
    return func.scan(_on(f), arrays(init), arrays(xs), length, reverse, unroll)


def _scan_by_hand(f: Function, init: Any, xs: Any, length: int | None, reverse: bool) -> Any:
    count = length if not tree_leaves(xs) else tree_leaves(xs)[0].shape[0]
    carry, ys = init, []
    for i in reversed(range(count or 0)) if reverse else range(count or 0):
        carry, y = f(carry, tree_map(lambda x, i=i: x[i], xs))
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, tree_map(lambda *parts: jnp.stack(parts), *ys) if ys else None


def map(f: Function, xs: Any, *, batch_size: int | None = None) -> Any:
    """A function of each slice along the first axis, in order."""
    return func.map(_on(f), arrays(xs), batch_size=batch_size)


def associative_scan(fn: Function, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes combined by an associative function of two."""
    return func.associative_scan(_on(fn), arrays(elems), reverse, axis)


def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """What `solve(f, initial_guess)` finds; gradients flow through its steps."""
    without_effect("custom_root", tangent_solve=tangent_solve, has_aux=has_aux)
    return solve(f, initial_guess)


def custom_linear_solve(
    matvec: Function, b: Any, solve: Function, transpose_solve: Any = None, symmetric: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """What `solve(matvec, b)` finds; gradients flow through its steps."""
    without_effect(
        "custom_linear_solve", transpose_solve=transpose_solve, symmetric=symmetric, has_aux=has_aux
    )
    return solve(matvec, b)
