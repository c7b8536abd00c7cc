"""NumPy's names, and the Array API standard 2024.12, on arrays with gradients.

>>> import weft.numpy as np
>>> np.linspace(0, 1, 3) + 1
array([1. , 1.5, 2. ])
"""

from __future__ import annotations

import sys as _sys
from typing import Any as _Any

from weft import exports as _exports
from weft.eager.functions.elementwise.declared import function_of as _function_of
from weft.ir import dtype as _types
from weft.ir.hooks import HOOKS as _HOOKS
from weft.numpy import fft as fft
from weft.numpy import linalg as linalg
from weft.numpy import method as method
from weft.numpy import random as random
from weft.numpy.array import ndarray as ndarray
from weft.numpy.constant import *
from weft.numpy.convert import astype as astype
from weft.numpy.convert import of_arrays as _arrays
from weft.numpy.creation import *
from weft.numpy.difference import *
from weft.numpy.elementwise import *
from weft.numpy.info import __array_namespace_info__ as __array_namespace_info__
from weft.numpy.logic import *
from weft.numpy.manipulation import *
from weft.numpy.product import *
from weft.numpy.promotion import *
from weft.numpy.searching import *
from weft.numpy.statistical import *
from weft.numpy.subscript import *
from weft.ops import declaration as _declaration
from weft.ops.refusal import guard as _guard

bool = bool_ = _types.bool_
int8, int16, int32, int64 = _types.int8, _types.int16, _types.int32, _types.int64
uint8, uint16, uint32, uint64 = _types.uint8, _types.uint16, _types.uint32, _types.uint64
float16, bfloat16 = _types.float16, _types.bfloat16
float32, float64 = _types.float32, _types.float64
complex64, complex128 = _types.complex64, _types.complex128
half, single, double = float16, float32, float64


__array_api_version__ = "2024.12"


def _declared(name: str) -> _Any:
    """An operation that a program declares.

    Raises:
        AttributeError: none has this name.
    """
    source = _declaration.source_of("numpy", name)
    if source is None:
        raise AttributeError(f"module 'weft.numpy' has no attribute {name!r}")
    return _arrays(_function_of(source))


_exports.gather(globals(), "fft", "linalg", "random")
_exports.lazy(globals(), {}, _declared, lambda: _declaration.sources("numpy"))
_HOOKS.array_namespace = lambda: _sys.modules[__name__]

for _module in (__name__, fft.__name__, linalg.__name__, random.__name__):
    _guard(vars(_sys.modules[_module]))
