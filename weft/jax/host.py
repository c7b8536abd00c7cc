"""Functions of NumPy's arrays among JAX's: called at once, or when a traced function runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import recorded, wrap
from weft.errors import WeftError
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.jax.array import Array, of_array
from weft.ops.boundary import host

Kind = tuple[DType, tuple[int, ...]]
_LIKE = of_array(np.zeros(0, np.float32))


def _called(*xs: Value, run: Callable[..., Any], kinds: tuple[Kind, ...], wide: bool) -> Any:
    return host.call(run, *xs, types_of=kinds, wide=wide)


_call = recorded(_called, differentiable=False)


def hosted(function: Callable[..., Any], *xs: Any, kind: Kind) -> Any:
    """A function of NumPy's arrays with one result of a known type."""
    return several(function, xs, [kind])[0]


def several(
    function: Callable[..., Any], xs: Sequence[Any], kinds: Sequence[Kind], wide: bool = False,
    when_run: bool = False,
) -> list[Array]:  # fmt: skip
    """The same with several results, as a tuple.

    Args:
        when_run: whether a traced function that is given known values calls it when it runs.
    """
    arrays = None if when_run and trace.now.depth else values(xs)
    if arrays is not None:
        found = function(*arrays)
        parts = found if isinstance(found, tuple) else (found,)
        pairs = zip(parts, kinds, strict=True)
        return [wrap(leaf(np.asarray(y, d.numpy).reshape(shape)), _LIKE) for y, (d, shape) in pairs]
    found = _call.on(_LIKE, *xs, run=function, kinds=tuple(kinds), wide=wide)
    return list(found) if isinstance(found, tuple) else [found]


def values(xs: Sequence[Any]) -> list[Any] | None:
    """The values of arrays; `None` if a function is being traced."""
    try:
        return [x.array if isinstance(x, Array) else np.asarray(x) for x in xs]
    except WeftError:
        return None


def watched(callback: Callable[..., Any], leaves: Sequence[Any], tree: Any) -> None:
    """Call a function with values when a traced function computes them.

    The first array is replaced by itself after the call, so that what depends on it makes the call.
    """
    xs = [x for x in leaves if isinstance(x, Array)]

    def call(*arrays: Any) -> Any:
        rest = iter(arrays)
        given, named = tree.build([next(rest) if isinstance(x, Array) else x for x in leaves])
        callback(*given, **named)
        return arrays[0]

    first = xs[0]
    kind = (first.lazy.type.dtype, tuple(first.shape))
    passed = _call.on(first, *xs, run=call, kinds=(kind,), wide=False)
    first.shown = passed.lazy
