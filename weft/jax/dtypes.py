"""`jax.dtypes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.dtype import bfloat16 as bfloat16
from weft.jax.array import canonical as canonicalize_dtype
from weft.jax.key import extended, prng_key
from weft.jax.numpy.kind import issubdtype, result_type

float0 = np.dtype([("float0", np.void, 0)])


def scalar_type_of(x: Any) -> type:
    """The Python type of a number."""
    return type(x)


__all__ = [
    "bfloat16", "canonicalize_dtype", "extended", "float0", "issubdtype", "prng_key", "result_type",
    "scalar_type_of",
]  # fmt: skip
