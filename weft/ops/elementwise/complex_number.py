"""Complex numbers and their parts. NumPy computes them; they have no kernels.

Gradients pair a cotangent `g` of `z` with a change `dz` as the real part of `g * dz`, as in JAX and
autograd. So rules of holomorphic functions are those of real ones, without conjugates, and the
gradient of `abs(z) ** 2` is `2 * conj(z)`. Eager tensors have the conjugates of these gradients, as
in PyTorch: see `weft.eager.record.pending.conjugate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.declaration import Case, Face, Opaque, constant_of, defop
from weft.ops.declaration.fact import Autocast, Batching, Facts
from weft.ops.declaration.numeric import FLOATS, draw, elementwise, fitted
from weft.ops.declaration.rule import arithmetic, broadcast_shape, floating
from weft.ops.elementwise.compare import equal, less, select
from weft.ops.elementwise.convert import cast
from weft.ops.elementwise.transcendental import atan2
from weft.ops.shape.creation import zeros_like

__all__ = ["angle"]


def _part_dtype(x: DType) -> DType:
    return arithmetic(x).real


def _real_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    return (complex_of(g, zeros_like(g)) if x.dtype.is_complex else g,)


def _imag_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    return (complex_of(zeros_like(g), -g) if x.dtype.is_complex else None,)


real = elementwise(
    "real", lambda b, x: x, np.real, _real_vjp, kinds="iufc", dtype=_part_dtype,
    face=Face("The real parts; real numbers are returned as they are.", torch="", tf1="Real"),
)  # fmt: skip
imag = elementwise(
    "imag", lambda b, x: b.const(0, x.dtype), np.imag, _imag_vjp, kinds="iufc", dtype=_part_dtype,
    face=Face("The imaginary parts; 0 for real numbers.", torch="", tf1="Imag"),
)  # fmt: skip
conj = elementwise(
    "conj", lower=lambda b, x: x, reference=np.conjugate, vjp=lambda g, y, x: (conj(g),),
    kinds="iufc",
    face=Face("The complex conjugates; real numbers are returned as they are.",
              torch="", numpy="conj conjugate", tf1="Conj"),
)  # fmt: skip


def _complex_dtype(x: DType, y: DType) -> DType:
    return types.complex128 if floating(x, y) is types.float64 else types.complex64


def _complex_vjp(g: Any, z: Any, x: Any, y: Any) -> tuple[Any, ...]:
    return cast(real(g), dtype=x.dtype), cast(-imag(g), dtype=y.dtype)


def _complex_cases() -> Iterator[Case]:
    for dtype in FLOATS:
        for x, y in (((3, 5), (5,)), ((), ()), ((0, 2), (2,))):
            yield Case((draw(x, dtype), draw(y, dtype, seed=1)))


def _complex_reference(x: Any, y: Any) -> Any:
    whole = np.complex128 if x.dtype == np.float64 else np.complex64
    z = np.empty(np.broadcast_shapes(x.shape, y.shape), whole)
    z.real, z.imag = x, y  # x + 1j * y would turn infinities into NaN
    return z


complex_of = defop(
    "complex",
    inputs="real imag",
    dtype=_complex_dtype,
    shape=broadcast_shape,
    reference=_complex_reference,
    vjp=fitted(_complex_vjp),
    lower=Opaque("complex"),
    cases=_complex_cases,
    partial=True,
    facts=Facts(autocast=Autocast.WIDEST, batching=Batching.BROADCAST),
)
"""The complex numbers with these real and imaginary parts; complex64 for half precision."""


@Face(torch="angle", tf1="Angle")
def angle(x: Value) -> Value:
    """The angle from the positive real axis, in (-pi, pi]."""
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    zero = constant_of(0, x.dtype)
    return select(less(x, zero), constant_of(np.pi, x.dtype), select(equal(x, x), zero, x))
