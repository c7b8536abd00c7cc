"""custom_jvp: a function with a tangent rule, from which both modes follow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft import func
from weft.func.tree import flatten
from weft.jax.array import Array
from weft.jax.config import without_effect
from weft.jax.gradient_rule import PlainInside, bound, custom_vjp, filled, perturbed
from weft.jax.numpy import api as _numpy
from weft.jax.transform import arrays, wraps
from weft.jax.tree_util import tree_map

jnp: Any = _numpy

__all__ = ["custom_jvp"]

Function = Callable[..., Any]


class custom_jvp:
    """A function whose tangent is set by `defjvp` or `defjvps`.

    Its gradient is the transposed tangent, which is linear.

    >>> @custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defjvps(lambda t, ans, x: t * 10)
    >>> float(func.grad(f)(jnp.array(0.0)))
    10.0
    """

    def __init__(self, fun: Function, nondiff_argnums: Sequence[int] = (), **_: Any) -> None:
        wraps(fun)(self)
        self.fun, self.fixed = fun, tuple(nondiff_argnums)
        self.rule: Function | None = None
        self.plain = PlainInside()

    def defjvp(self, jvp: Function, symbolic_zeros: bool = False) -> Function:
        """Set the rule: from (*nondiff_args, primals, tangents) to (result, tangent).

        Args:
            symbolic_zeros: no effect: tangents that are zero are arrays.
        """
        without_effect("defjvp", symbolic_zeros=symbolic_zeros)
        self.rule = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Set a rule for each argument: from (tangent, result, *primals) to a tangent."""

        def rule(primals: Any, tangents: Any) -> Any:
            result = self(*primals)
            pairs = zip(jvps, tangents, strict=True)
            parts = [f(t, result, *primals) for f, t in pairs if f is not None]
            return result, functools.reduce(lambda a, b: a + b, parts, jnp.zeros_like(result))

        self.rule = rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises:
            AttributeError: no rule was set.
        """
        rule = self.rule
        if rule is None:
            name = getattr(self.fun, "__name__", str(self.fun))
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        if self.plain.inside or not any(map(perturbed, flatten((args, kwargs))[0])):
            return self.fun(*args, **kwargs)
        rule = self.plain.of(rule)
        whole = bound(self.fun, args, kwargs)
        fixed = [whole[i] for i in self.fixed]
        free = arrays(tuple([x for i, x in enumerate(whole) if i not in self.fixed]))

        def plain(*xs: Any) -> Any:
            rest = iter(xs)
            return self.fun(*[x if i in self.fixed else next(rest) for i, x in enumerate(whole)])

        def back(xs: Any, g: Any) -> Any:
            leaves, tree = flatten(xs)
            chosen = [i for i, x in enumerate(leaves) if _moves(x)]

            def tangent(*moves: Any) -> Any:
                parts = [jnp.zeros_like(x) if isinstance(x, Array) else None for x in leaves]
                for i, move in zip(chosen, moves, strict=True):
                    parts[i] = move
                found = rule(*fixed, xs, tree.build(parts))[1]
                return arrays(tree_map(filled, found))

            zeros = [jnp.zeros_like(leaves[i]) for i in chosen]
            pulled = iter(func.vjp(tangent, *zeros)[1](g))
            found = [next(pulled) if i in chosen else None for i in range(len(leaves))]
            rest = iter(found)
            return tuple([_part(x, rest) for x in xs])

        made = custom_vjp(plain)
        made.defvjp(lambda *xs: (plain(*xs), xs), back)
        return made(*free)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _moves(x: Any) -> bool:
    return isinstance(x, Array) and x.dtype.is_inexact


def _part(x: Any, rest: Any) -> Any:
    leaves, tree = flatten(x)
    found = [next(rest) for _ in leaves]
    return None if all([g is None for g in found]) else tree.build(found)
