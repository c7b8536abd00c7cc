"""Padding of the last dimensions: `pad`."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.eager.tensor.scalar import element
from weft.errors import ShapeError
from weft.ir.node import Value, at_user_line
from weft.ir.shape import show
from weft.ops.shape.padding import padded

__all__ = ["pad"]

MODES = ("constant", "reflect", "replicate", "circular")


@recorded
def _pad(x: Value, *, pads: Any, mode: str, value: float) -> Value:
    return padded(x, pads, mode, value)


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Padding at the ends of the last dimensions.

    Args:
        input: any shape.
        pad: (low, high) of the last dimension, then of the one before it, and so on; negative
            numbers crop.
        mode: `constant`, `reflect` (without the edge), `replicate` or `circular`.
        value: of `constant`; 0 by default.

    Raises:
        ShapeError: an odd number of sizes, more than there are dimensions, or too large to reflect.
    """
    shape, sizes = dims_of(input), tuple(map(int, pad))
    if mode not in MODES:
        raise NotImplementedError(
            f"pad: expected mode {', '.join(MODES)}, got {mode!r}{at_user_line()}"
        )
    if len(sizes) % 2 or len(sizes) > 2 * len(shape):
        raise ShapeError.here(
            f"pad: expected pairs (low, high) for at most {len(shape)} dimensions, got {sizes}"
        )
    pairs = [sizes[i : i + 2] for i in range(0, len(sizes), 2)][::-1]
    pads = (*[(0, 0)] * (len(shape) - len(pairs)), *pairs)
    if mode in ("reflect", "replicate"):
        channels = shape[1:] if len(shape) > len(pairs) + 1 else shape
        if not all(channels):
            raise ShapeError.here(
                f"pad: mode {mode!r} takes no empty dimension but the batch's, got {show(shape)}"
            )
    _check(shape, pads, mode)
    if value:
        element(value, lazy_of(input).type.dtype)  # raises if the type cannot hold the value
    return _pad(input, pads=pads, mode=mode, value=0 if value is None else value)


def _check(shape: tuple[int, ...], pads: Any, mode: str) -> None:
    for size, pair in zip(shape, pads, strict=True):
        most = {"reflect": size - 1, "circular": size}.get(mode)
        if size + sum(pair) < 0 or (any(pair) and most is not None and max(pair) > most):
            raise ShapeError.here(
                f"pad: mode {mode!r} cannot pad a dimension of {size} by {tuple(pair)}; the input "
                f"has shape {show(shape)}"
            )
        if size == 0 and max(pair) > 0 and mode != "constant":
            raise ShapeError.here(f"pad: expected a dimension that is not empty, got {show(shape)}")
