"""Log-sum-exp of complex numbers and with weights; softmax over several axes."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import concrete


def logsumexp_of_complex(x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Value:
    """`log(sum(exp(x)))` of complex numbers, stabilized by the largest real part."""
    top = catalogue.max(catalogue.real(x), axes=axes, keepdims=True)
    top = catalogue.select(catalogue.isinf(top), constant_of(0, top.dtype), top)
    top = catalogue.cast(catalogue.stop_gradient(top), dtype=x.dtype)
    total = catalogue.sum(catalogue.exp(x - top), axes=axes, keepdims=True)
    y = catalogue.log(total) + top
    return y if keepdims else catalogue.squeeze(y, axes=axes)


@autocasting(Autocast.FLOAT32)
def logsumexp(x: Value, b: Value | None, *, axes: tuple[int, ...], keepdims: bool) -> Value:
    """`log(sum(b * exp(x)))` over axes; `logsumexp` without weights."""
    if b is None:
        return catalogue.logsumexp(x, axes=axes, keepdims=keepdims)
    top = catalogue.stop_gradient(catalogue.max(x, axes=axes, keepdims=True))
    finite = catalogue.isfinite(top)
    top = catalogue.select(finite, top, constant_of(0, x.dtype))
    total = catalogue.log(catalogue.sum(b * catalogue.exp(x - top), axes=axes, keepdims=True))
    found = total + top
    return found if keepdims else catalogue.squeeze(found, axes=axes) if concrete(x) else found


@autocasting(Autocast.FLOAT32)
def log_softmax(x: Value, *, axes: tuple[int, ...]) -> Value:
    """`log_softmax` over several axes."""
    return x - catalogue.logsumexp(x, axes=axes, keepdims=True)


@autocasting(Autocast.FLOAT32)
def softmax(x: Value, *, axes: tuple[int, ...]) -> Value:
    """`softmax` over several axes."""
    return catalogue.exp(log_softmax(x, axes=axes))
