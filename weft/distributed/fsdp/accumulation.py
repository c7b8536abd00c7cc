"""Gradients that add up on a rank until they are reduced."""

from __future__ import annotations

from typing import Any

from weft.eager.record.lazy import Lazy


class Accumulation:
    """Tensors that stand for parameters: gradients flow to them instead.

    A parameter has another one only when it has changed: gradients of earlier calls, whose backward
    passes may be yet to come, are not lost.
    """

    def __init__(self) -> None:
        self._made: dict[int, list[tuple[Lazy, Any]]] = {}

    def __bool__(self) -> bool:
        return bool(self._made)

    def leaf(self, number: int, value: Any, source: Lazy) -> Any:
        """What stands for a parameter, of this value as long as the parameter has `source`."""
        made = self._made.setdefault(number, [])
        if not made or made[-1][0] is not source:
            made.append((source, value.detach().requires_grad_()))
        return made[-1][1]

    def leaves(self) -> list[Any]:
        """All that stand for parameters."""
        return [x for made in self._made.values() for _, x in made]

    def gradients(self) -> dict[int, Any]:
        """The sums of gradients by the parameter's number; zeros where there are none."""
        found: dict[int, Any] = {}
        for number, made in self._made.items():
            first, *others = [x.grad for _, x in made if x.grad is not None] or [
                made[-1][1].detach().new_zeros(made[-1][1].shape)
            ]
            for g in others:
                first = first + g
            found[number] = first
        return found
