"""Gradients that accumulate on a rank until they are reduced."""

from __future__ import annotations

from typing import Any

from weft.eager.record.pending.lazy import Lazy


class Accumulation:
    """Leaves that replace parameters in calls and receive their gradients.

    A parameter gets a new leaf only when it has changed, so the gradients of earlier calls, whose
    backward passes may follow later, are not lost.
    """

    def __init__(self) -> None:
        self._made: dict[int, list[tuple[Lazy, Any]]] = {}

    def __bool__(self) -> bool:
        return bool(self._made)

    def leaf(self, number: int, value: Any, source: Lazy) -> Any:
        """The leaf of a parameter; it has this value while the parameter's value is `source`."""
        made = self._made.setdefault(number, [])
        if not made or made[-1][0] is not source:
            made.append((source, value.detach().requires_grad_()))
        return made[-1][1]

    def leaves(self) -> list[Any]:
        """All leaves that replace parameters."""
        return [x for made in self._made.values() for _, x in made]

    def gradients(self) -> dict[int, Any]:
        """The accumulated gradients by the parameter's number; zeros if there are none."""
        sums: dict[int, Any] = {}
        for number, made in self._made.items():
            first, *others = [x.grad for _, x in made if x.grad is not None] or [
                made[-1][1].detach().new_zeros(made[-1][1].shape)
            ]
            for g in others:
                first = first + g
            sums[number] = first
        return sums
