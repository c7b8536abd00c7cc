"""Reductions over ranks in a fixed order, so that all ranks get the same bits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, DTypeError
from weft.ir.dtype import as_dtype
from weft.transport.base import Array, Zeros

REDUCTIONS: Final[dict[str, Any]] = {
    "sum": np.add, "mean": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip
"""The binary function of each reduction; a mean is divided at the end."""


def check_reduction(name: str, dtype: Any) -> None:
    """Check a reduction and its element type.

    Raises:
        ArgumentError: there is no such reduction.
        DTypeError: the element type does not support it.
    """
    if name not in REDUCTIONS:
        raise ArgumentError(f"expected one of {', '.join(REDUCTIONS)}, got {name!r}")
    element_type = as_dtype(dtype)
    if name == "mean" and not element_type.is_inexact:
        raise DTypeError(f"mean: expected floating elements, got {element_type}")
    if name in ("band", "bor", "bxor") and element_type.is_inexact:
        raise DTypeError(f"{name}: expected integers, got {element_type}")


def is_plain(dtype: Any) -> bool:
    """Whether one NumPy call reduces two arrays; float16 and bfloat16 are summed in float32."""
    element_type = as_dtype(dtype)
    return not (element_type.is_inexact and element_type.size == 2)


def reduced(rows: list[Array], name: str, out: Array, count: int | None = None) -> None:
    """Reduce arrays of one shape in a fixed tree into `out`; see `Tree`."""
    Tree(rows, name, count).into(out)


class Tree:
    """A reusable reduction of arrays of one shape in a fixed tree.

    The tree adds neighboring rows, then neighboring sums, and so on, so that aligned runs of 2, 4,
    8, ... rows are subtrees. Sums of float16 and bfloat16 are taken in float32 and rounded once.
    Rows are overwritten.

    Args:
        count: the divisor of a mean; by default the number of rows.
    """

    def __init__(self, rows: list[Array], name: str, count: int | None = None) -> None:
        element_type = as_dtype(rows[0].dtype)
        self._given = rows
        self._halves = not is_plain(element_type.numpy)
        self._rows = [np.empty(r.shape, np.float32) for r in rows] if self._halves else rows
        self._function = REDUCTIONS[name]
        self._pairs = _pairs(self._rows)
        divisor = len(rows) if count is None else count
        mean = name == "mean" and divisor != 1
        self._divisor = self._rows[0].dtype.type(divisor) if mean else None
        # The last sum is the result, unless it is divided or converted.
        plain = bool(self._pairs) and not mean and not self._halves
        self._last = self._pairs.pop() if plain else None

    def into(self, out: Array) -> None:
        """Reduce the rows' current contents."""
        if self._halves:
            for wide, row in zip(self._rows, self._given, strict=True):
                wide[...] = row
        function = self._function
        for a, b in self._pairs:
            function(a, b, out=a)
        if self._last is not None:
            function(*self._last, out=out)
            return
        total = self._rows[0]
        if self._divisor is not None:
            np.divide(total, self._divisor, total)
        if total is not out:
            out[...] = total


def _pairs(rows: list[Array]) -> list[tuple[Array, Array]]:
    """The pairs to add, in order."""
    pairs: list[tuple[Array, Array]] = []
    while len(rows) > 1:
        pairs += zip(rows[::2], rows[1::2], strict=False)
        rows = rows[::2]
    return pairs


def zeros_for(name: str, dtype: Any, size: int) -> Zeros | None:
    """The contribution of a member without data; `None` if zeros would change the result."""
    return Zeros(name, as_dtype(dtype).name, size) if name in ("sum", "mean") else None
