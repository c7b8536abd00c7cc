"""Vector math in LLVM IR: accurate to a few units in the last place, any vector width.

Each function takes a builder and registers of `float` or `double`, scalar or vector, and writes
straight-line code (plus one branch around huge angles):

>>> from weft.codegen import vecmath
>>> from weft.codegen.builder import Builder, Reg
>>> f = Builder("f", [])
>>> vecmath.exp(f, Reg("<16 x float>", "%x")).type
'<16 x float>'

NaN, infinities, signed zeros, overflow and subnormal numbers are as in C and NumPy.

Largest errors of float32 in units in the last place, over all 2**32 arguments, with fused
multiply-add (without it they differ by less than 0.3 and stay below 2):

    exp 1.04    expm1 1.52    log 0.84      log1p 1.44    tanh 1.34     sigmoid 1.81
    erf 1.16    sin 1.58      cos 1.58      tan 0.53      asin 1.31     acos 1.16
    atan 1.86   sinh 1.62     cosh 1.47     rsqrt 1.49    power 0.56 and atan2 1.80 (samples)

float64 stays below 2.5 (3.5 without fused multiply-add) on samples of some 100 000. Remainders
are exact.
"""

from weft import exports as _exports
from weft.codegen.vecmath.basic import *
from weft.codegen.vecmath.division import *
from weft.codegen.vecmath.error import erf as erf
from weft.codegen.vecmath.exponential import *
from weft.codegen.vecmath.inverse import *
from weft.codegen.vecmath.power import *
from weft.codegen.vecmath.trigonometric import *

_exports.gather(globals())
