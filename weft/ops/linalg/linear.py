"""Matmuls with weights: `linear` and `bilinear`."""

from __future__ import annotations

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import like_weights


@autocasting(Autocast.LOW)
def linear(x: Value, weight: Value, bias: Value | None) -> Value:
    """`x @ weight.T + bias`."""
    dims, w = known(x.shape), known(weight.shape)
    if not dims or len(w) not in (1, 2) or dims[-1] != w[-1]:
        raise ShapeError.here(
            f"linear: expected an input whose last dimension is weight.shape[-1], got input "
            f"{show(dims)} and weight {show(w)}"
        )
    like_weights("linear", x, weight, bias)
    if len(w) == 1:
        y = catalogue.sum(x * weight, axes=(-1,))
        return y if bias is None else y + bias
    if len(dims) == 1:
        row = catalogue.reshape(x, shape=(1, dims[0]))
        return catalogue.reshape(_linear_of_rows(row, weight, bias), shape=(w[0],))
    return _linear_of_rows(x, weight, bias)


def _linear_of_rows(x: Value, weight: Value, bias: Value | None) -> Value:
    y = catalogue.matmul(x, weight, transpose_y=True)
    return y if bias is None else y + bias


def _rows(dims: tuple[int, ...]) -> int:
    count = 1
    for d in dims[:-1]:
        count *= d
    return count


@autocasting(Autocast.LOW)
def bilinear(x1: Value, x2: Value, weight: Value, bias: Value | None) -> Value:
    """`y[..., k] = x1[..., :] @ weight[k] @ x2[..., :] + bias[k]`."""
    a, b, w = known(x1.shape), known(x2.shape), known(weight.shape)
    if len(w) != 3 or a[:-1] != b[:-1] or (a[-1], b[-1]) != w[1:]:
        raise ShapeError.here(
            f"bilinear: expected inputs (..., in1) and (..., in2) for a weight (out, in1, in2), "
            f"got {show(a)}, {show(b)} and {show(w)}"
        )
    like_weights("bilinear", x1, weight, bias)
    rows, (out, one, two) = _rows(a), w
    # (rows, in1) @ (in1, out * in2), times x2, summed over in2: rows * out * in2 temporaries.
    flat = catalogue.reshape(catalogue.transpose(weight, perm=(1, 0, 2)), shape=(one, out * two))
    left = catalogue.matmul(catalogue.reshape(x1, shape=(rows, one)), flat)
    left = catalogue.reshape(left, shape=(rows, out, two))
    y = catalogue.sum(left * catalogue.reshape(x2, shape=(rows, 1, two)), axes=(-1,))
    y = y if bias is None else y + bias
    return catalogue.reshape(y, shape=(*a[:-1], out))
