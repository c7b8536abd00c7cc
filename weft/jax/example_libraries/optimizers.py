"""`jax.example_libraries.optimizers`: optimizers as (init, update, get_params)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from weft.eager.record.memory.array_value import leaf
from weft.eager.tensor.dispatch import recorded, wrap
from weft.jax.array import Array, of_number
from weft.jax.lax.elementwise import rsqrt
from weft.jax.numpy import api as _numpy
from weft.jax.transform import arrays
from weft.jax.tree_util import (
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from weft.ops.optimizer import adam as rules
from weft.ops.optimizer import descent, root, schedule
from weft.ops.optimizer.rule import Rule

jnp: Any = _numpy

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "Params", "adagrad", "adam", "adamax",
    "clip_grads", "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule",
    "momentum", "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant",
    "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

_bias_at = recorded(rules.bias)

Params = Any
Step = Any
Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The states of all parameters, and the structures of parameters and states."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda xs: ((xs.packed_state,), (xs.tree_def, xs.subtree_defs)),
    lambda data, xs: OptimizerState(xs[0], *data),
)


class Optimizer(NamedTuple):
    """An optimizer: `init_fn(params)`, `update_fn(i, grads, state)`, `params_fn(state)`."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """An optimizer of pytrees from one of single arrays."""

    @functools.wraps(opt_maker)
    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree: Any) -> OptimizerState:
            leaves, tree = tree_flatten(arrays(x0_tree))
            pairs = [tree_flatten(init(x)) for x in leaves]
            return OptimizerState(
                tuple([tuple(s) for s, _ in pairs]), tree, tuple([t for _, t in pairs])
            )

        def tree_update(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            states, tree, subtrees = opt_state
            grads, structure = tree_flatten(grad_tree)
            if structure != tree:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    f"parameter tree structure with which it was initialized: parameter tree "
                    f"{tree} and grad tree {structure}."
                )
            rows = zip(grads, states, subtrees, strict=True)
            new = [tree_flatten(update(i, g, tree_unflatten(t, s))) for g, s, t in rows]
            return OptimizerState(tuple([tuple(s) for s, _ in new]), tree, subtrees)

        def tree_params(opt_state: OptimizerState) -> Any:
            states, tree, subtrees = opt_state
            rows = zip(states, subtrees, strict=True)
            return tree_unflatten(tree, [get_params(tree_unflatten(t, s)) for s, t in rows])

        return Optimizer(tree_init, tree_update, tree_params)

    return made


# Schedules


def constant(step_size: Any) -> Schedule:
    """The same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """`step_size * decay_rate ** (i / decay_steps)`."""
    return _schedule(
        schedule.exponential_decay, step_size, decay_steps, decay_rate, staircase=False
    )


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """`step_size / (1 + decay_rate * i / decay_steps)`, in stairs if told."""
    options = {"staircase": bool(staircase)}
    return _schedule(schedule.inverse_time_decay, step_size, decay_steps, decay_rate, **options)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """From one step size to another within some steps."""
    numbers = (step_size, decay_steps, final_step_size, power)
    return _schedule(schedule.polynomial_decay, *numbers, cycle=False)


def _schedule(rule: Callable[..., Any], rate: Any, *numbers: Any, **options: Any) -> Schedule:
    """A schedule by a rule of (rate, step, numbers)."""
    of = recorded(rule)

    def scheduled(i: Any) -> Any:
        if rule is not schedule.polynomial_decay and _are_numbers(rate, i, *numbers):
            wide = [wrap(leaf(np.array(x, np.float64))) for x in (rate, i, *numbers)]
            return of(*wide, **options).item()  # as JAX, a Python number of Python numbers
        like = i if isinstance(i, Array) else of_number(0.0)
        return of.on(like, *[jnp.asarray(x, float) for x in (rate, i, *numbers)], **options)

    return scheduled


def _are_numbers(*xs: Any) -> bool:
    return all([isinstance(x, int | float) for x in xs])


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """A step size between each two boundaries."""
    limits, sizes = jnp.array(boundaries), jnp.array(values)
    if limits.ndim != 1 or sizes.shape != (limits.shape[0] + 1,):
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: sizes[jnp.sum(i > limits)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule, or a constant one for a number.

    Raises:
        TypeError: neither.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# Optimizers


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent."""
    rate = make_schedule(step_size)
    return (lambda x0: x0), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


def _zeros(count: int) -> Callable[[Any], Any]:
    return lambda x0: (x0, *[jnp.zeros_like(x0)] * count)


def _first(state: Any) -> Any:
    return state[0]


def _by(rule: Rule, slots: int, rates: Callable[[Any], dict[str, Any]], **flags: Any) -> Any:
    """An optimizer by an update rule.

    Args:
        slots: how many arrays it keeps for each parameter.
        rates: its further inputs at a step.
    """

    def values(p: Any, g: Any, *rest: Any, names: tuple[str, ...]) -> Any:
        given_ = dict(zip(names, rest[slots:], strict=True))
        return rule(p, g, *rest[:slots], **given_, **flags).values

    of = recorded(values)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, *old = map(jnp.asarray, state)
        now = {k: jnp.asarray(v, x.dtype) for k, v in rates(i).items()}
        return tuple(of(x, jnp.asarray(g, x.dtype), *old, *now.values(), names=tuple(now)))

    return _zeros(slots), update, _first


def _bias(beta: float, i: Any) -> Any:
    """What a running mean has of the true one after step `i`."""
    return _bias_at(jnp.asarray(beta, float), jnp.asarray(i, float) + 1)


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Gradient descent with momentum."""
    rate = make_schedule(step_size)
    return _by(descent.sgd, 1, lambda i: {"lr": rate(i), "momentum": mass})


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Nesterov's accelerated gradient."""
    rate = make_schedule(step_size)
    return _by(descent.sgd, 1, lambda i: {"lr": rate(i), "momentum": mass}, nesterov=True)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """AdaGrad with momentum (Duchi et al., 2011)."""
    rate = make_schedule(step_size)
    mean = {"momentum": momentum, "rest": 1 - momentum}
    return _by(root.adagrad_momentum, 2, lambda i: {"lr": rate(i), **mean})


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp."""
    return _rmsprop(step_size, gamma, eps, 0.0, 1)


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """RMSProp with momentum."""
    return _rmsprop(step_size, gamma, eps, momentum, 2)


def _rmsprop(step_size: Any, gamma: Any, eps: Any, mass: Any, slots: int) -> Any:
    rate = make_schedule(step_size)

    def rates(i: Any) -> dict[str, Any]:
        keep = {"alpha": gamma, "rest": 1 - gamma}
        return {"lr": rate(i), **keep, "eps": eps, "momentum": mass}

    return _by(root.rmsprop, slots, rates, rate_first=True, inside=True)


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma and Ba, 2014)."""
    rate = make_schedule(step_size)

    def rates(i: Any) -> dict[str, Any]:
        means = {"beta1": b1, "rest1": 1 - b1, "beta2": b2, "rest2": 1 - b2}
        step = rate(i) / _bias(b1, i)
        return {"step": step, "scale": rsqrt(_bias(b2, i)), "eps": eps, **means}

    return _by(rules.adam, 2, rates)


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """AdaMax (Kingma and Ba, 2014)."""
    rate = make_schedule(step_size)

    def rates(i: Any) -> dict[str, Any]:
        return {
            "step": rate(i) / _bias(b1, i),
            "beta1": b1,
            "rest1": 1 - b1,
            "beta2": b2,
            "eps": eps,
        }

    return _by(rules.adamax, 2, rates, eps_in_largest=False)


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3 (Anil et al., "Memory-Efficient Adaptive Optimization", 2019)."""
    rate = make_schedule(step_size)

    mean = {"momentum": momentum, "rest": 1 - momentum}
    rule = functools.cache(lambda slots: _by(root.sm3, slots, lambda i: {"lr": rate(i), **mean})[1])

    def init(x0: Any) -> Any:
        rows = [jnp.zeros(n, x0.dtype) for n in x0.shape]
        return x0, jnp.zeros_like(x0), tuple(rows)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, moved, rows = state
        x, moved, *rows = rule(1 + len(rows))(i, g, (x, moved, *rows))
        return x, moved, tuple(rows)

    return init, update, _first


# Gradients


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all leaves."""
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in tree_leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down to a norm."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A state among states, for files."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A pytree like the parameters with the state of each."""
    states, tree, subtrees = opt_state
    rows = zip(states, subtrees, strict=True)
    return tree_unflatten(tree, [JoinPoint(tree_unflatten(t, s)) for s, t in rows])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state of such a pytree."""
    points, tree = tree_flatten(marked_pytree)
    pairs = [tree_flatten(p.subtree) for p in points]
    return OptimizerState(tuple([tuple(s) for s, _ in pairs]), tree, tuple([t for _, t in pairs]))
