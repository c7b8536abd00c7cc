"""Whether two ways to compute a call agree."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tools.attack.hostile.value import Array

COARSE = ("float16", "bfloat16")  # where one of them rounds to on the way
FINE = {"float32": 2e-3, "complex64": 2e-3}
LEAST = (
    1e-3  # relative to the largest number: smaller differences may be rounding of something larger
)


def different(interpreted: Sequence[Array], compiled: Sequence[Array], coarse: bool = False) -> str:
    """How results differ; empty if they agree up to rounding, relative to the largest number."""
    if len(interpreted) != len(compiled):
        return f"{len(interpreted)} and {len(compiled)} arrays"
    largest = max([_largest(x) for x in interpreted], default=LEAST)
    for a, b in zip(interpreted, compiled, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
        close = 0.1 if coarse or str(a.dtype) in COARSE else FINE.get(str(a.dtype), 1e-6)
        same = _same(a, b, close, largest)
        if not same.all():
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            return f"{a[place]!r} and {b[place]!r} at {place}"
    return ""


def _wide(x: Array) -> Array:
    """The numbers in double precision."""
    with np.errstate(all="ignore"):
        return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _exact(x: Array) -> bool:
    return x.dtype.kind not in "fc" and x.dtype != ml_dtypes.bfloat16


def _largest(x: Array) -> float:
    wide = np.zeros(1) if _exact(x) else np.abs(_wide(x))
    return float(wide[np.isfinite(wide)].max(initial=LEAST))


def _same(a: Array, b: Array, close: float, largest: float) -> Array:
    if _exact(a):
        return np.asarray(a == b)
    with np.errstate(all="ignore"):
        return np.isclose(_wide(a), _wide(b), rtol=close, atol=close * largest, equal_nan=True)
