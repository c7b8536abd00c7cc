"""Tensors that a dataset's sources and arguments are, besides plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.graph import toposort
from weft.ops.boundary import state
from weft.ops.declaration import op_of
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.graph import computes_at_once, is_symbolic
from weft.tf1.framework.tensor_shape import Dimension
from weft.tf1.session.base import BaseSession

_STATE: Final = frozenset({state.placeholder, state.variable, state.counter})


def is_input(x: Any) -> bool:
    """Whether only a run tells the value."""
    if getattr(x, "has_value", False):
        return False
    return is_tensor(x) and (is_symbolic(x) or not computes_at_once())


def argument(x: Any) -> Any:
    """An argument of a transformation: a tensor that only a run tells, or a plain value."""
    if isinstance(x, Dimension):
        return x.value
    if is_tensor(x) and not is_input(x):
        return plain(x.numpy())
    known = static_value(x) if is_tensor(x) else None
    return x if known is None else plain(known)


def plain(array: Any) -> Any:
    """The number in a scalar array; other values unchanged."""
    return array.item() if isinstance(array, np.ndarray | np.generic) and array.ndim == 0 else array


def filled(arguments: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The arguments with the values of those that are tensors."""
    rest = iter(values)
    return [plain(next(rest)) if is_input(x) else x for x in arguments]


def values_at_start(inputs: Sequence[Any]) -> Callable[[], list[Any]]:
    """Computes the inputs of an iterator that starts by itself.

    Raises:
        InvalidArgumentError: they depend on a feed, a variable or a random number.
    """
    if computes_at_once():
        return lambda: inputs[0].graph.at_once.session.run(list(inputs)) if inputs else []
    if not all([is_tensor(x) and _is_pure(convert_to_tensor(x)) for x in inputs]):
        text = "feeds, variables or random numbers; use make_initializable_iterator"
        raise InvalidArgumentError(
            None, None, f"make_one_shot_iterator: the dataset depends on {text}"
        )

    def values() -> list[Any]:
        return BaseSession(graph=inputs[0].graph).run(list(inputs)) if inputs else []

    return values


def _is_pure(x: Any) -> bool:
    return _STATE.isdisjoint(map(op_of, toposort(x.graph.ir, [x.used.node])))
