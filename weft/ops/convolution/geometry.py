"""The geometry of sliding windows: strides, padding and dilation, in 1, 2 or 3 dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from weft.errors import ShapeError
from weft.ir.shape import Dim, Dims

Padding = str | Sequence[Sequence[int]] | None
NAMED: Final = ("same", "valid")


@dataclass(frozen=True)
class Geometry:
    """Sizes of a sliding window, one entry per spatial axis; all but `image` and `output` are
    known.

    Output position `o` of an axis sees image positions `o * stride + t * dilation - low`, for `t`
    from 0 to `kernel - 1`, if they lie inside the image.
    """

    image: Dims
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # (low, high)
    dilation: tuple[int, ...]
    output: Dims

    @property
    def padded(self) -> tuple[int, ...]:
        """The padded sizes of the image."""
        dims = zip(cast("tuple[int, ...]", self.image), self.padding, strict=True)
        return tuple(d + low + high for d, (low, high) in dims)


def geometry(
    image: Dims,
    kernel: Dims,
    strides: Sequence[int] | None = None,
    padding: Padding = None,
    dilation: Sequence[int] | None = None,
) -> Geometry:
    """The geometry of a window on an image; entries that depend on an unknown size are `None` or 0.

    Args:
        padding: pairs (low, high); `None` or "valid" for none; "same" for an output of ceil(image /
            stride), with an odd element at the high end, as in TensorFlow.

    Raises:
        ShapeError: a size out of range, or a window that does not fit.
    """
    rank = len(image)
    if len(kernel) != rank or not 1 <= rank <= 3:
        raise ShapeError(f"expected 1 to 3 spatial axes, got {rank} and a window of {len(kernel)}")
    steps = _positive("strides", strides, rank)
    spread = _positive("dilation", dilation, rank)
    extents = [None if k is None else (k - 1) * s + 1 for k, s in zip(kernel, spread, strict=True)]
    pads = _padding(padding, image, extents, steps)
    output = tuple(map(_output, image, extents, steps, pads))
    sizes = tuple(0 if k is None else k for k in kernel)
    return Geometry(image, sizes, steps, pads, spread, output)


def _positive(name: str, values: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    found = (1,) * rank if values is None else tuple(values)
    if len(found) != rank or min(found) < 1:
        raise ShapeError(f"{name}: expected {rank} positive integers, got {found}")
    return found


def _padding(
    padding: Any, image: Dims, extents: Sequence[Dim], strides: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    rank = len(image)
    if padding is None or padding == "valid":
        return ((0, 0),) * rank
    if padding == "same":
        return tuple(map(_same, image, extents, strides))
    pairs = () if isinstance(padding, str) else tuple(tuple(pair) for pair in padding)
    if len(pairs) != rank or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ShapeError(
            f"padding: expected {rank} pairs of sizes, 'same' or 'valid', got {padding!r}"
        )
    return tuple((pair[0], pair[1]) for pair in pairs)


def _same(size: Dim, extent: Dim, stride: int) -> tuple[int, int]:
    if size is None or extent is None:
        return 0, 0
    total = max((-(-size // stride) - 1) * stride + extent - size, 0)
    return total // 2, total - total // 2


def _output(size: Dim, extent: Dim, stride: int, pads: tuple[int, int]) -> Dim:
    if size is None or extent is None:
        return None
    if extent < 1:
        raise ShapeError("expected a window of at least one element")
    room = size + pads[0] + pads[1]
    if room < extent:
        raise ShapeError(f"expected a window of at most the padded size {room}, got {extent}")
    return (room - extent) // stride + 1
