"""`jax.scipy.signal`: convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.jax.config import refuse_given, without_effect
from weft.jax.lax.convolution import conv_general_dilated
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted

jnp: Any = _numpy

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]


def _pads(n: int, mode: str) -> tuple[int, int]:
    found = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}
    if mode not in found:
        raise ArgumentError.here(f"convolve: expected mode full, same or valid, got {mode!r}")
    return found[mode]


def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Any:
    """The convolution of arrays of 1 to 3 axes."""
    without_effect("convolve", method=method, precision=precision)
    x, w = promoted(in1, in2)
    w = jnp.flip(w, tuple(range(w.ndim)))
    pads = [_pads(n, mode) for n in w.shape]
    pads = [
        (b, a) if mode == "same" and n % 2 == 0 else (a, b)
        for (a, b), n in zip(pads, w.shape, strict=True)
    ]
    x, w = (v if v.dtype.is_inexact else v.astype(float) for v in (x, w))
    return conv_general_dilated(x[None, None], w[None, None], (1,) * x.ndim, pads)[0, 0]


def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Any:
    """The correlation of arrays of 1 to 3 axes."""
    w = jnp.flip(jnp.conj(jnp.asarray(in2)), tuple(range(np.ndim(in2))))
    return convolve(in1, w, mode, method, precision)


def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, **_: Any
) -> Any:
    """The convolution of two matrices.

    Raises:
        ArgumentError: another boundary than zeros.
    """
    if boundary != "fill" or fillvalue != 0:
        raise ArgumentError.here("convolve2d: expected boundary='fill' and fillvalue=0")
    return convolve(in1, in2, mode)


def correlate2d(in1: Any, in2: Any, mode: str = "full", **_: Any) -> Any:
    """The correlation of two matrices."""
    return correlate(in1, in2, mode)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """`convolve`."""
    refuse_given("fftconvolve", axes=axes)
    return convolve(in1, in2, mode)
