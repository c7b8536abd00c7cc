"""`jax.core`: names that programs use in annotations and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.jax.array import Array, is_traced
from weft.jax.device import Jaxpr as Jaxpr
from weft.jax.device import ShapeDtypeStruct, eval_jaxpr
from weft.jax.device import typeof as get_aval

ClosedJaxpr = Jaxpr
DeviceArray = Array


class _IsShaped(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> ShapeDtypeStruct:
        return ShapeDtypeStruct(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Array | ShapeDtypeStruct)


class ShapedArray(metaclass=_IsShaped):
    """The class of what has a shape and a dtype; a call makes a `ShapeDtypeStruct`."""


AbstractValue = ShapedArray


class _IsTraced(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Array) and is_traced(instance)


class Tracer(metaclass=_IsTraced):
    """The class of arrays without a value yet: those in a function that is being traced.

    >>> import weft.jax.numpy as jnp
    >>> isinstance(jnp.ones(2), Tracer)
    False
    """


def safe_map(f: Callable[..., Any], *xs: Sequence[Any]) -> list[Any]:
    """`map` of sequences of one length, as a list."""
    return [f(*row) for row in zip(*xs, strict=True)]


def safe_zip(*xs: Sequence[Any]) -> list[tuple[Any, ...]]:
    """`zip` of sequences of one length, as a list."""
    return list(zip(*xs, strict=True))


__all__ = [
    "AbstractValue", "ClosedJaxpr", "DeviceArray", "Jaxpr", "ShapedArray", "Tracer", "eval_jaxpr",
    "get_aval", "partial", "safe_map", "safe_zip",
]  # fmt: skip
