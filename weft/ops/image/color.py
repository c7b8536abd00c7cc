"""Colors of images whose last axis is red, green and blue."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue, constant_of

__all__ = ["hsv_to_rgb", "rgb_to_hsv"]


def rgb_to_hsv(x: Value) -> Value:
    """Hue, saturation and value, each in [0, 1], of colors in [0, 1]."""
    c = catalogue
    r, g, b = (x[..., i : i + 1] for i in range(3))
    high = c.max(x, axes=(-1,), keepdims=True)
    low = c.min(x, axes=(-1,), keepdims=True)
    span = high - low
    colored = c.greater(span, 0)
    safe = c.select(colored, span, constant_of(1.0, x.dtype))
    turn = c.select(
        c.equal(high, r), (g - b) / safe,
        c.select(c.equal(high, g), (b - r) / safe + 2.0, (r - g) / safe + 4.0),
    ) / 6.0  # fmt: skip
    hue = c.select(c.less(turn, 0), turn + 1.0, turn)
    zero = hue * 0.0
    saturation = c.select(c.greater(high, 0), span / c.select(c.greater(high, 0), high, high + 1.0),
                          zero)  # fmt: skip
    return c.concatenate(c.select(colored, hue, zero), saturation, high, axis=(x.rank or 1) - 1)


def hsv_to_rgb(x: Value) -> Value:
    """Red, green and blue of hue, saturation and value in [0, 1]."""
    c = catalogue
    h, s, v = (x[..., i : i + 1] for i in range(3))
    parts: list[Value] = []
    for offset in (5.0, 3.0, 1.0):
        place = h * 6.0 + offset
        k = place - c.floor(place / 6.0) * 6.0
        ramp = c.minimum(c.minimum(k, 4.0 - k), k * 0.0 + 1.0)
        parts.append(v - v * s * c.maximum(ramp, ramp * 0.0))
    return c.concatenate(*parts, axis=(x.rank or 1) - 1)
