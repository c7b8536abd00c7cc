"""Gradient accumulation weighted by batch sizes, and clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.nn.utils import clip_grad_norm_, clip_grad_value_
from weft.ops.declaration import catalogue


@recorded(differentiable=False)
def _times(factor: Value, *grads: Value) -> tuple[Value, ...]:
    return tuple([g * catalogue.cast(factor, dtype=g.dtype) for g in grads])


def parameters_of(optimizer: Any) -> list[Any]:
    """All tensors that an optimizer changes."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def scale_gradients(parameters: Iterable[Any], factor: float) -> None:
    """Scale all gradients in place, within the step's program."""
    grads = [p.grad for p in parameters if p.grad is not None]
    if grads and factor != 1.0:
        for g, lazy in zip(grads, _times.record((factor, *grads), {}), strict=True):
            g.replace(lazy)


def clip(parameters: Iterable[Any], value: float | None, algorithm: str | None) -> None:
    """Clip gradients by their norm, or each element.

    Raises:
        ArgumentError: the algorithm is neither `"norm"` nor `"value"`.
    """
    if not value:
        return
    if algorithm in (None, "norm"):
        clip_grad_norm_(parameters, value)
    elif algorithm == "value":
        clip_grad_value_(parameters, value)
    else:
        raise ArgumentError.here(
            f"Trainer: expected gradient_clip_algorithm 'norm' or 'value', got {algorithm!r}"
        )


class Window:
    """A window of batches whose gradients add up to those of one batch of all their items.

    A batch's loss is the mean over its items, so it is weighted by their number, and the summed
    gradients are divided by the total. Weights are relative to the first batch's, so that equal
    batches have weight 1.
    """

    def __init__(self) -> None:
        self._first = 0.0
        self._total = 0.0

    def weight(self, items: float) -> float:
        """The weight of the next batch's loss."""
        if not self._first:
            self._first = items or 1.0
        self._total += items
        return items / self._first

    def close(self) -> float:
        """The factor for the summed gradients; resets the window."""
        factor = self._first / self._total if self._total else 1.0
        self._first = self._total = 0.0
        return factor

    @property
    def is_empty(self) -> bool:
        """Whether the window is empty."""
        return not self._first

    def state_dict(self) -> dict[str, Any]:
        """The window's counts."""
        return {"first": self._first, "total": self._total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the counts."""
        self._first, self._total = float(state["first"]), float(state["total"])
