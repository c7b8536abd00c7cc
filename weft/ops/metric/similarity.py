"""Similarity of images: SSIM, of one scale and of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue, constant_of

Weights = Sequence[float]


def gaussian(sigma: float) -> tuple[float, ...]:
    """The weights of a window of 3.5 standard deviations to each side, which add up to 1."""
    reach = int(3.5 * sigma + 0.5)
    weights = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    return tuple((weights / weights.sum()).tolist())


def _blurred(x: Value, windows: Sequence[Weights]) -> Value:
    """Weighted means in windows of (N, H, W, C), without padding."""
    channels = known(x.shape)[-1]
    for axis, weights in enumerate(windows):
        shape = [1, 1, 1, 1]
        shape[axis] = len(weights)
        kernel = np.tile(np.reshape(weights, shape), (1, 1, 1, channels))
        w = constant_of(kernel.astype(x.dtype.numpy))
        x = catalogue.conv(
            x, w, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=channels
        )
    return x


def _mean(x: Value) -> Value:
    return catalogue.mean(x, axes=(1, 2, 3))


def _compared(
    x: Value, y: Value, span: Value, windows: Sequence[Weights], k1: float, k2: float
) -> tuple[Value, Value]:
    """SSIM and its part of contrast and structure, of each of (N, H, W, C)."""
    pads = [len(w) // 2 for w in windows]
    edges = ((0, 0), *[(n, n) for n in pads], (0, 0))
    x, y = (catalogue.mirror_pad(v, paddings=edges, mode="reflect") for v in (x, y))
    mx, my, xx, yy, xy = (_blurred(v, windows) for v in (x, y, x * x, y * y, x * y))
    c1, c2 = (k1 * span) * (k1 * span), (k2 * span) * (k2 * span)
    zero = constant_of(0, x.dtype)
    spread_x = catalogue.maximum(xx - mx * mx, zero)
    spread_y = catalogue.maximum(yy - my * my, zero)
    contrast = (2.0 * (xy - mx * my) + c2) / (spread_x + spread_y + c2)
    whole = (2.0 * mx * my + c1) / (mx * mx + my * my + c1) * contrast
    _, high, wide, _ = known(contrast.shape)
    rows, columns = pads
    inner = catalogue.slice(
        contrast, begin=(0, rows, columns, 0),
        end=(known(contrast.shape)[0], high - rows, wide - columns, known(contrast.shape)[3]),
    )  # fmt: skip
    return _mean(whole), _mean(inner)


def structural_similarity(
    x: Value, y: Value, span: Value, *, windows: Sequence[Weights], k1: float, k2: float,
    betas: Sequence[float] = (), normalize: str | None = None,
) -> Value:  # fmt: skip
    """SSIM of each of (N, C, H, W); with `betas`, the product over scales, each half the last.

    Args:
        span: the range of the numbers, one number.
        windows: weights along height and width.
        betas: the exponent of each scale.
        normalize: `"relu"` takes negative parts for 0, `"simple"` maps -1..1 to 0..1.

    Source: Wang et al., "Image Quality Assessment: From Error Visibility to Structural Similarity",
    2004, and "Multi-scale Structural Similarity for Image Quality Assessment", 2003.
    """
    x, y = (catalogue.transpose(v, perm=(0, 2, 3, 1)) for v in (x, y))
    if not betas:
        return _compared(x, y, span, windows, k1, k2)[0]
    found: Value | None = None
    for scale, beta in enumerate(betas):
        if scale:
            x, y = _halved(x), _halved(y)
        whole, contrast = _compared(x, y, span, windows, k1, k2)
        part = whole if scale == len(betas) - 1 else contrast
        if normalize == "relu":
            part = catalogue.maximum(part, constant_of(0, part.dtype))
        elif normalize == "simple":
            part = (part + 1.0) / 2.0
        power = catalogue.power(part, constant_of(beta, part.dtype))
        found = power if found is None else found * power
    assert found is not None
    return found


def _halved(x: Value) -> Value:
    """Means of 2 x 2 pixels; a last odd row or column is left out."""
    n, high, wide, channels = known(x.shape)
    h, w = high // 2, wide // 2
    x = catalogue.slice(x, begin=(0, 0, 0, 0), end=(n, 2 * h, 2 * w, channels))
    return catalogue.mean(catalogue.reshape(x, shape=(n, h, 2, w, 2, channels)), axes=(2, 4))
