"""Sums and the like of what ranks have, always in the same order: the same bits everywhere."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, DTypeError
from weft.ir.dtype import as_dtype
from weft.transport.base import Array

REDUCTIONS: Final[dict[str, Any]] = {
    "sum": np.add, "mean": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip
"""By name, how two become one; a mean is divided afterwards."""


def check_reduction(name: str, dtype: Any) -> None:
    """Refuse what cannot be reduced.

    Raises:
        ArgumentError: there is no such reduction.
        DTypeError: it does not take elements of that type.
    """
    if name not in REDUCTIONS:
        raise ArgumentError(f"expected one of {', '.join(REDUCTIONS)}, got {name!r}")
    kind = as_dtype(dtype)
    if name == "mean" and not kind.is_inexact:
        raise DTypeError(f"mean: expected floating elements, got {kind}")
    if name in ("band", "bor", "bxor") and kind.is_inexact:
        raise DTypeError(f"{name}: expected integers, got {kind}")


def reduced(rows: list[Array], name: str, out: Array, count: int | None = None) -> None:
    """Reduce arrays of one shape in a fixed tree into `out`.

    The tree adds neighbors, then neighbors among the sums, and so on: parts of 2, 4, 8, ... rows
    that begin at a multiple of their length are sums of their own. float16 and bfloat16 are added
    up in float32, and rounded once. Rows are overwritten.

    Args:
        count: by what a mean is divided, if not by the number of rows.
    """
    function, divisor = REDUCTIONS[name], len(rows) if count is None else count
    kind = as_dtype(out.dtype)
    if kind.is_inexact and kind.size == 2:
        rows = [row.astype(np.float32) for row in rows]
    while len(rows) > 1:
        pairs = zip(rows[::2], rows[1::2], strict=False)
        rest = rows[len(rows) & ~1 :]
        rows = [function(a, b, out=a) for a, b in pairs] + rest
    total = rows[0]
    if name == "mean" and divisor != 1:
        total = np.divide(total, total.dtype.type(divisor), out=total)
    if total is not out:
        out[...] = total
