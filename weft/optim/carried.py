"""Numbers that the state of a parameter carries from step to step, beside the step count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from weft.eager.tensor.dtype.promotion import get_default_dtype
from weft.ir.dtype import float64

Scalars = tuple[float, ...]
Known = dict[tuple[int, Scalars], dict[str, float]]


class Carrying(Protocol):
    """An optimizer, as far as its scalars go."""

    carries: ClassVar[tuple[str, ...]]

    def scalars(self, group: dict[str, Any], step: int) -> dict[str, float]:
        """The scalars as so many steps would leave them."""
        ...

    def carried(self, group: dict[str, Any], step: int) -> dict[str, float]:
        """The scalars after a step."""
        ...


def advance(
    optimizer: Carrying, state: dict[str, Any], group: dict[str, Any], known: Known
) -> Scalars:
    """Update the scalars of a parameter's state; returns them as they were before.

    Args:
        known: results for other parameters of this group in this step.
    """
    names, step = optimizer.carries, state["step"]
    scalars: list[Any] = [state.get(name) for name in names]
    if None in scalars:  # saved before they were part of the state
        state.update({**optimizer.scalars(group, step - 1), **state})
        scalars = [state[name] for name in names]
    before: Scalars = tuple(scalars)
    after = known.get((step, before))
    if after is None:
        after = known[step, before] = optimizer.carried(joined(group, names, before), step)
    state.update(after)
    return before


def joined(group: dict[str, Any], names: Sequence[str], scalars: Scalars) -> dict[str, Any]:
    """The options of a group, and the scalars."""
    return {**group, **dict(zip(names, scalars, strict=True))} if scalars else group


def rounded(x: Any) -> float:
    """A number as PyTorch keeps it in the state: in float32, unless the default is float64."""
    return float(x) if get_default_dtype() is float64 else float(np.float32(float(x)))
