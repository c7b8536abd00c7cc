"""Pixel shuffle and channel shuffle."""

from __future__ import annotations

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def pixel_shuffle(x: Value, factor: int) -> Value:
    """Rearrange channels to blocks of `factor` pixels: (N, H, W, C r r) -> (N, H r, W r, C).

    The position in the block is the fastest-varying part of the channel index, as in PyTorch (Shi
    et al., 2016).

    Raises:
        ShapeError: a rank other than 4, or channels that the block does not divide.
    """
    n, height, width, channels = _image("pixel_shuffle", x)
    if factor < 1 or channels % (factor * factor):
        raise ShapeError.here(
            f"pixel_shuffle: expected channels that {factor} * {factor} divides, got shape"
            f" {show(x.shape)}"
        )
    left = channels // (factor * factor)
    split = catalogue.reshape(x, shape=(n, height, width, left, factor, factor))
    moved = catalogue.transpose(split, perm=(0, 1, 4, 2, 5, 3))
    return catalogue.reshape(moved, shape=(n, height * factor, width * factor, left))


def pixel_unshuffle(x: Value, factor: int) -> Value:
    """The inverse of `pixel_shuffle`: blocks of pixels as channels.

    Raises:
        ShapeError: a rank other than 4, or sizes that `factor` does not divide.
    """
    n, height, width, channels = _image("pixel_unshuffle", x)
    if factor < 1 or height % factor or width % factor:
        raise ShapeError.here(
            f"pixel_unshuffle: expected sizes that {factor} divides, got shape {show(x.shape)}"
        )
    rows, columns = height // factor, width // factor
    split = catalogue.reshape(x, shape=(n, rows, factor, columns, factor, channels))
    moved = catalogue.transpose(split, perm=(0, 1, 3, 5, 2, 4))
    return catalogue.reshape(moved, shape=(n, rows, columns, channels * factor * factor))


def _image(name: str, x: Value) -> tuple[int, ...]:
    dims = concrete(x)
    if len(dims) != 4:
        raise ShapeError.here(f"{name}: expected x of rank 4, got shape {show(dims)}")
    return dims


def channel_shuffle(x: Value, groups: int) -> Value:
    """Interleave the channels of the groups (Zhang et al., 2017).

    Raises:
        ShapeError: groups that do not divide the channels.
    """
    *lead, channels = concrete(x)
    if groups < 1 or channels % groups:
        raise ShapeError.here(
            f"channel_shuffle: expected groups that divide {channels} channels, got {groups}"
        )
    split = catalogue.reshape(x, shape=(*lead, groups, channels // groups))
    perm = (*range(len(lead)), len(lead) + 1, len(lead))
    return catalogue.reshape(catalogue.transpose(split, perm=perm), shape=(*lead, channels))
