"""NumPy's names, and the Array API standard 2024.12, on arrays with gradients.

>>> import weft.numpy as np
>>> np.linspace(0, 1, 3) + 1
array([1. , 1.5, 2. ])
"""

from __future__ import annotations

import sys

from weft.eager.interchange import set_namespace
from weft.ir import dtype as types
from weft.numpy import fft as fft
from weft.numpy import linalg as linalg
from weft.numpy import random as random
from weft.numpy.array import astype as astype
from weft.numpy.array import ndarray as ndarray
from weft.numpy.constant import *  # noqa: F403
from weft.numpy.creation import *  # noqa: F403
from weft.numpy.difference import *  # noqa: F403
from weft.numpy.elementwise import *  # noqa: F403
from weft.numpy.info import __array_namespace_info__ as __array_namespace_info__
from weft.numpy.logic import *  # noqa: F403
from weft.numpy.manipulation import *  # noqa: F403
from weft.numpy.product import *  # noqa: F403
from weft.numpy.promotion import *  # noqa: F403
from weft.numpy.searching import *  # noqa: F403
from weft.numpy.statistical import *  # noqa: F403
from weft.numpy.subscript import *  # noqa: F403

bool = bool_ = types.bool_
int8, int16, int32, int64 = types.int8, types.int16, types.int32, types.int64
uint8, uint16, uint32, uint64 = types.uint8, types.uint16, types.uint32, types.uint64
float16, bfloat16, float32, float64 = types.float16, types.bfloat16, types.float32, types.float64
complex64, complex128 = types.complex64, types.complex128
half, single, double = float16, float32, float64

__array_api_version__ = "2024.12"
set_namespace(lambda: sys.modules[__name__])
