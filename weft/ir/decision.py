"""Decisions by functions of integers that arithmetic on extents cannot express, such as a search.

>>> from weft.ir.extent import Extents
>>> @decision
... def algorithm(rows: int, columns: int) -> int:
...     return 2 if rows in range(10, 20) and columns > 5 else 0
>>> extents = Extents()
>>> n = extents.base(12)
>>> algorithm(n, 7), [extents.admits(extents.values([m])) for m in (13, 19, 20)]
(2, [True, True, False])
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from weft.ir.extent import DECISIONS, Extent


def decision(function: Callable[..., int]) -> Callable[..., int]:
    """A pure function of integers, of a module, that decides which code is written.

    Applied to extents, it gives the plain number for the planned sizes, with a guard that it gives
    the same for the others.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    DECISIONS[name] = function

    @functools.wraps(function)
    def decide(*numbers: int) -> int:
        extents = next((n.extents for n in numbers if isinstance(n, Extent)), None)
        if extents is None:
            return function(*numbers)
        found = function(*[n.value if isinstance(n, Extent) else n for n in numbers])
        extents.decided(name, numbers, found)
        return found

    return decide
