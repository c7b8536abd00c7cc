"""-0.0 as an attribute, told apart from 0.0 wherever attributes are compared."""

from __future__ import annotations

from math import copysign
from typing import Any


class MinusZero(float):
    """-0.0 as an attribute: a key that has it does not equal one with 0.0."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MinusZero)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, MinusZero)

    def __hash__(self) -> int:
        return hash(MinusZero)


def told_apart(value: Any) -> Any:
    """A number as an attribute that equals no other number of another sign."""
    is_minus_zero = type(value) is float and not value and copysign(1, value) < 0
    return MinusZero(value) if is_minus_zero else value
