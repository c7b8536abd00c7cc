"""The names of `jax.numpy`, which loads this module when one is first used."""

from __future__ import annotations

from typing import Any as _Any
from typing import Final as _Final

import numpy as _numpy

from weft import exports as _exports
from weft import numpy as _weft
from weft.jax import at as at
from weft.jax.array import Array as Array
from weft.jax.array import jaxed as _jaxed
from weft.jax.numpy import fft as fft
from weft.jax.numpy import linalg as linalg
from weft.jax.numpy.creation import *
from weft.jax.numpy.editing import *
from weft.jax.numpy.joining import *
from weft.jax.numpy.kind import *
from weft.jax.numpy.mapping import *
from weft.jax.numpy.method import WEAK as _WEAK
from weft.jax.numpy.reduction import *
from weft.jax.numpy.scalar import SCALARS as _SCALARS
from weft.jax.numpy.statistic import *

bool = bool_ = _SCALARS["bool"]
int8, int16, int32, int64 = [_SCALARS[f"int{n}"] for n in (8, 16, 32, 64)]
uint8, uint16, uint32, uint64 = [_SCALARS[f"uint{n}"] for n in (8, 16, 32, 64)]
float16, bfloat16, float32, float64 = [
    _SCALARS[n] for n in ("float16", "bfloat16", "float32", "float64")
]
complex64, complex128 = _SCALARS["complex64"], _SCALARS["complex128"]
half, single, double = float16, float32, float64
ndarray = Array
pi, e, inf, nan, euler_gamma = _numpy.pi, _numpy.e, _numpy.inf, _numpy.nan, _numpy.euler_gamma
newaxis = None
csingle, cdouble, complex_ = complex64, complex128, complex128
float_, int_, uint = float64, int64, uint64

_exports.gather(
    globals(), "bool", "bool_", "complex128", "complex64", "fft", "float32", "float64", "inf",
    "linalg", "nan", "newaxis", "pi",
)  # fmt: skip
_LEFT_OUT: _Final = frozenset({"random", "array_equal_", "method"})


def _face(name: str) -> _Any:
    """A function of `weft.numpy`.

    Raises:
        AttributeError: it has none of this name.
    """
    found = None if name.startswith("__") or name in _LEFT_OUT else getattr(_weft, name, None)
    if found is None:
        raise AttributeError(f"module 'jax.numpy' has no attribute {name!r}")
    return _jaxed(found, _WEAK.get(name)) if callable(found) else found


_exports.lazy(globals(), {}, _face, lambda: set(vars(_weft)["__all__"]) - _LEFT_OUT)
