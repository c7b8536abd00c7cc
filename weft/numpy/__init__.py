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
from weft.numpy.dtype_name import *
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
