"""Made by `python -m tools.package_stubs`."""

from typing import Any
from weft.jax.lax import linalg as linalg
from weft.jax.lax.collective import *
from weft.jax.lax.control import *
from weft.jax.lax.convolution import *
from weft.jax.lax.elementwise import *
from weft.jax.lax.slicing import *
from weft.jax.lax.structure import *
from weft.jax.lax.window import *
abs: Any
acos: Any
acosh: Any
add: Any
annotations: Any
asin: Any
asinh: Any
atan: Any
atan2: Any
atanh: Any
bessel_i0e: Any
bessel_i1e: Any
betainc: Any
bitcast_convert_type: Any
bitwise_and: Any
bitwise_not: Any
bitwise_or: Any
bitwise_xor: Any
broadcast_shapes: Any
cbrt: Any
ceil: Any
clamp: Any
clz: Any
complex: Any
conj: Any
convert_element_type: Any
cos: Any
cosh: Any
digamma: Any
div: Any
eq: Any
erf: Any
erf_inv: Any
erfc: Any
exp: Any
exp2: Any
expm1: Any
floor: Any
ge: Any
gt: Any
igamma: Any
igammac: Any
imag: Any
integer_pow: Any
is_finite: Any
le: Any
lgamma: Any
log: Any
log1p: Any
logistic: Any
lt: Any
max: Any
min: Any
mul: Any
ne: Any
neg: Any
nextafter: Any
polygamma: Any
population_count: Any
pow: Any
real: Any
reciprocal: Any
reduce_precision: Any
rem: Any
round: Any
rsqrt: Any
select: Any
select_n: Any
shift_left: Any
shift_right_arithmetic: Any
shift_right_logical: Any
sign: Any
sin: Any
sinh: Any
sqrt: Any
square: Any
stop_gradient: Any
sub: Any
tan: Any
tanh: Any
zeta: Any
