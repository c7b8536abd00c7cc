"""`torch.nn.modules.utils`: a number as many times as there are dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["ntuple", "pair", "quadruple", "reversed_repeated", "single", "triple"]


def ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a number n times, and makes others a tuple.

    >>> ntuple(2)(3), ntuple(2)([3, 4])
    ((3, 3), (3, 4))
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


single, pair, triple, quadruple = ntuple(1), ntuple(2), ntuple(3), ntuple(4)


def reversed_repeated(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The values in reverse order, each n times.

    >>> reversed_repeated((1, 2), 2)
    (2, 2, 1, 1)
    """
    return tuple([value for value in reversed(tuple(t)) for _ in range(n)])
