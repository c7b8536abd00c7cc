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
from weft.jax.numpy.statistic import *
from weft.numpy.dtype_name import *

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
