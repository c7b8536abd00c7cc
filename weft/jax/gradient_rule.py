"""Functions with gradients of their own: `jax.custom_vjp` and `jax.custom_gradient`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.func.custom import CustomVjp, refuses
from weft.func.tree import flatten
from weft.jax.array import Array
from weft.jax.config import refuse_given, without_effect
from weft.jax.numpy import api as _numpy
from weft.jax.transform import arrays, wraps
from weft.jax.tree_util import tree_map

jnp: Any = _numpy

__all__ = ["custom_gradient", "custom_vjp"]

Function = Callable[..., Any]


def perturbed(x: Any) -> bool:
    """Whether a derivative may be asked of an argument."""
    return isinstance(x, Array) and x.lazy.tracked and not refuses(x.lazy)


class PlainInside:
    """Whether a rule of a function runs, in which the function is called without its rule."""

    def __init__(self) -> None:
        self.inside = False

    def of(self, rule: Function) -> Function:
        """The rule, with the mark set while it runs."""

        def run(*args: Any) -> Any:
            before, self.inside = self.inside, True
            try:
                return rule(*args)
            finally:
                self.inside = before

        return run


class custom_vjp:
    """A function with the gradient set by `defvjp`.

    Args:
        nondiff_argnums: arguments that are no arrays: `bwd` takes them first.
    """

    def __init__(
        self, fun: Function, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Any = ()
    ) -> None:
        refuse_given("custom_vjp", nondiff_argnames=nondiff_argnames)
        wraps(fun)(self)
        self.fun, self.fixed = fun, tuple(nondiff_argnums)
        self.fwd: Function | None = None
        self.bwd: Function | None = None
        self.plain = PlainInside()
        self.symbolic = False

    def defvjp(
        self, fwd: Function, bwd: Function, symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set the functions of the forward and the backward pass."""
        without_effect("defvjp", optimize_remat=optimize_remat)
        self.fwd, self.bwd, self.symbolic = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.fwd is None or self.bwd is None:
            name = getattr(self.fun, "__name__", str(self.fun))
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        if self.plain.inside or not any(map(perturbed, flatten((args, kwargs))[0])):
            return self.fun(*args, **kwargs)
        whole = bound(self.fun, args, kwargs)
        fixed = [whole[i] for i in self.fixed]
        free = [arrays(x) for i, x in enumerate(whole) if i not in self.fixed]
        made = CustomVjp(self._with(self.fun, whole))
        fwd, bwd = self._with(self.plain.of(self.fwd), whole), self.bwd
        if self.symbolic:
            moves = [perturbed(x) for x in flatten(free)[0]]
            made.defvjp(_with_primals(fwd, moves), _with_zeros(bwd, fixed))
        else:
            made.defvjp(fwd, lambda residuals, g: bwd(*fixed, residuals, g))
        return made(*free)

    def _with(self, fun: Function, whole: Sequence[Any]) -> Function:
        fixed = self.fixed

        def inner(*free: Any) -> Any:
            rest = iter(free)
            args = [x if i in fixed else next(rest) for i, x in enumerate(whole)]
            return arrays(fun(*args))

        return inner

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


@dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument of `fwd` under `symbolic_zeros`, and whether it may be differentiated."""

    value: Any
    perturbed: bool


class SymbolicZero:
    """A zero tangent or cotangent with the shape and dtype of `aval`."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval
        self.shape, self.dtype = aval.shape, aval.dtype

    def instantiate(self) -> Array:
        """The zeros."""
        return jnp.zeros(self.shape, self.dtype)


def filled(g: Any) -> Any:
    """A tangent or cotangent as an array."""
    return g.instantiate() if isinstance(g, SymbolicZero) else g


def _with_primals(fwd: Function, moves: Sequence[bool]) -> Function:
    def run(*args: Any) -> Any:
        leaves, tree = flatten(args)
        return fwd(*tree.build(list(map(CustomVJPPrimal, leaves, moves))))

    return run


def _with_zeros(bwd: Function, fixed: Sequence[Any]) -> Function:
    def zero(g: Any) -> Any:
        return g if not isinstance(g, Array) or g.dtype.is_inexact else SymbolicZero(g)

    def run(residuals: Any, g: Any) -> Any:
        return tree_map(filled, bwd(*fixed, residuals, tree_map(zero, g)))

    return run


def bound(fun: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """All arguments by position."""
    if not kwargs:
        try:
            bound = inspect.signature(fun).bind(*args)
        except (TypeError, ValueError):
            return list(args)
    else:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    return list(bound.args)


def custom_gradient(fun: Function) -> Function:
    """A function that returns its result and a function from cotangents to gradients."""

    @wraps(fun)
    def plain(*args: Any) -> Any:
        return fun(*args)[0]

    made = custom_vjp(plain)

    def back(args: Any, g: Any) -> Any:
        found = fun(*args)[1](g)
        return found if isinstance(found, tuple) else (found,)

    made.defvjp(lambda *args: (fun(*args)[0], args), back)
    return made
