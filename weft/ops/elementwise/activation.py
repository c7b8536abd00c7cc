"""Activation functions: each is one fusable operation with its own gradient.

At a kink the derivative is that of TensorFlow and PyTorch: 0 for `relu` at 0.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.ops.declaration import Array, Face, Takes, constant_of
from weft.ops.declaration.fact import CHEAP
from weft.ops.declaration.numeric import elementwise
from weft.ops.elementwise.compare import greater, less, logical_and, select
from weft.ops.elementwise.transcendental import erf, exp, fast_erf, sigmoid, tanh

# Klambauer et al., "Self-Normalizing Neural Networks" (2017), equation 14
SELU_ALPHA: Final = 1.6732632423543772
SELU_SCALE: Final = 1.0507009873554805
# Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2
_GELU_CUBIC: Final = 0.044715
_GELU_SCALE: Final = math.sqrt(2.0 / math.pi)


def _zero(b: Any, x: Any) -> Any:
    return b.const(0, x.dtype)


def _where_positive(g: Any, x: Any, otherwise: Any) -> Any:
    return select(greater(x, constant_of(0, x.dtype)), g, otherwise)


def _relu6_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    zero, six = constant_of(0, x.dtype), constant_of(6, x.dtype)
    return (select(logical_and(greater(x, zero), less(x, six)), g, zero),)


relu = elementwise(
    "relu", lower=lambda b, x: b.maximum(x, _zero(b, x)),
    reference=lambda x: np.maximum(x.dtype.type(0), x),
    vjp=lambda g, y, x: (_where_positive(g, y, constant_of(0, x.dtype)),),
    kinds="iuf", facts=CHEAP,
    face=Face("Every element, or 0 where it is negative.", "[-1.0, 2.0] -> [0., 2.]",
              torch="relu_", tf1="Relu nn.relu", dtensor=True),
)  # fmt: skip
relu6 = elementwise(
    "relu6", lower=lambda b, x: b.minimum(b.maximum(x, _zero(b, x)), b.const(6, x.dtype)),
    reference=lambda x: np.clip(x, 0, 6).astype(x.dtype), vjp=_relu6_vjp,
    kinds="iuf", low=-4, high=9,
    face=Face("Every element, clipped to [0, 6].", "[-1.0, 2.0, 8.0] -> [0., 2., 6.]",
              tf1="Relu6 nn.relu6", takes=Takes.FLOATS),
)  # fmt: skip
leaky_relu = elementwise(
    "leaky_relu", lower=lambda b, x, alpha: b.select(b.less(_zero(b, x), x), x, x * alpha),
    reference=lambda x, alpha: np.where(x > 0, x, x.dtype.type(alpha) * x),
    vjp=lambda g, y, x, alpha: (_where_positive(g, x, g * alpha),),
    attrs={"alpha": 0.2}, variants=({"alpha": 0.5},),
    face=Face("Every element, scaled by a slope where it is negative.",
              "[-1.0, 2.0] -> [-0.0100,  2.0000]"),
)  # fmt: skip


def _elu_reference(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(0, x)))  # -0 stays


def _elu_slope(g: Any, x: Any, scale: float, below: float) -> Any:
    """`scale` above 0, else `below * exp(x)`: from y it would cancel where y is almost -alpha."""
    zero = constant_of(0, x.dtype)
    positive = greater(x, zero)
    falling = exp(select(positive, zero, x))  # which stays finite
    return select(positive, g * scale, g * falling * below)


elu = elementwise(
    "elu", lower=lambda b, x, alpha: b.select(b.less(_zero(b, x), x), x, b.expm1(x) * alpha),
    reference=_elu_reference, vjp=lambda g, y, x, alpha: (_elu_slope(g, x, 1.0, alpha),),
    attrs={"alpha": 1.0}, variants=({"alpha": 2.5},),
    face=Face("Every element, or `alpha * (exp(x) - 1)` where it is negative.",
              "[-1.0, 2.0] -> [-0.6321,  2.0000]", tf1="Elu nn.elu"),
)  # fmt: skip
selu = elementwise(
    "selu",
    lower=lambda b, x: b.select(b.less(_zero(b, x), x), x, b.expm1(x) * SELU_ALPHA) * SELU_SCALE,
    reference=lambda x: x.dtype.type(SELU_SCALE) * _elu_reference(x, SELU_ALPHA),
    vjp=lambda g, y, x: (_elu_slope(g, x, SELU_SCALE, SELU_SCALE * SELU_ALPHA),),
    face=Face("`elu`, scaled so that activations keep their variance (Klambauer et al., 2017).",
              "[-1.0, 2.0] -> [-1.1113,  2.1014]", tf1="Selu nn.selu"),
)  # fmt: skip


# x * sigmoid(x)
def _silu_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    s = sigmoid(x)
    return (g * (s + y * (1 - s)),)


silu = elementwise(
    "silu", lower=lambda b, x: x * b.sigmoid(x),
    reference=lambda x: x * np.exp(-np.logaddexp(0, -x)), vjp=_silu_vjp,
    rtol=4e-6, specials=(0.0, -0.0, 1.0, -50.0, np.inf, np.nan),
    fast=lambda x: x / (1 + np.exp(-x)),
    face=Face("`x * sigmoid(x)`.", "[-1.0, 2.0] -> [-0.2689,  1.7616]", tf1="swish nn.swish"),
)  # fmt: skip


# x * Phi(x), Phi the normal distribution function, or its approximation by tanh
def _gelu_rule(b: Any, x: Any, approximate: bool) -> Any:
    if approximate:
        inner = (x + x * x * x * _GELU_CUBIC) * _GELU_SCALE
        return x * 0.5 * (b.tanh(inner) + 1.0)
    return x * 0.5 * (b.erf(x * math.sqrt(0.5)) + 1.0)


def _gelu_reference(x: Array, approximate: bool) -> Array:
    wide = x.astype(np.float64)
    if approximate:
        phi = 0.5 * (1 + np.tanh(_GELU_SCALE * (wide + _GELU_CUBIC * wide**3)))
    else:
        phi = 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float64])(wide * math.sqrt(0.5)))
    return (wide * phi).astype(x.dtype)


def _fast_gelu(x: Array, approximate: bool) -> Array:
    if approximate:
        return 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + _GELU_CUBIC * (x * x * x))))
    return 0.5 * x * (1 + fast_erf(x * x.dtype.type(math.sqrt(0.5))))


def _gelu_vjp(g: Any, y: Any, x: Any, approximate: bool) -> tuple[Any, ...]:
    if approximate:
        t = tanh((x + x * x * x * _GELU_CUBIC) * _GELU_SCALE)
        slope = (1 - t * t) * (x * x * (3 * _GELU_CUBIC) + 1) * _GELU_SCALE
        return (g * 0.5 * (t + 1 + x * slope),)
    phi = (erf(x * math.sqrt(0.5)) + 1) * 0.5
    density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return (g * (phi + x * density),)


_GELU_SPECIALS: Final = (0.0, -0.0, 1.0, 30.0, np.inf, np.nan)
gelu = elementwise(
    "gelu", lower=_gelu_rule, reference=_gelu_reference, vjp=_gelu_vjp,
    attrs={"approximate": False}, variants=({"approximate": True},), specials=_GELU_SPECIALS,
    rtol=1e-5, fast=_fast_gelu,
    face=Face("Every element times the normal cumulative distribution function there.",
              "[-1.0, 2.0] -> [-0.1587,  1.9545]"),
)  # fmt: skip
