"""Convolutions over some axes of arrays."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.errors import ShapeError
from weft.numpy.convert import alike
from weft.numpy.manipulation import flip, pad
from weft.numpy.product import einsum
from weft.numpy.searching import take
from weft.ops.refusal import guard

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = ["convolve"]

Pairs = tuple[Sequence[int], Sequence[int]]


def _kept(mode: str, a: int, b: int) -> range:
    """The range of the full convolution of two vectors that a mode keeps."""
    if mode == "valid":
        return range(min(a, b) - 1, max(a, b))
    if mode == "same":
        return range((b - 1) // 2, (b - 1) // 2 + a)
    return range(a + b - 1)


_MODES: Final = ("full", "same", "valid")


def convolve(
    A: Any, B: Any, axes: Pairs | None = None, dot_axes: Pairs = ((), ()), mode: str = "full"
) -> ndarray:
    """The convolution over pairs of axes (all by default), summed over others.

    Args:
        axes: the axes of `A`, and those of `B`, to convolve over.
        dot_axes: the axes to sum products over.
        mode: `full`, `same` (as many elements as `A`), or `valid` (where both overlap in full).

    Returns:
        An array with the other axes of `A`, the other axes of `B`, then the convolved axes.

    Raises:
        ShapeError: another mode.

    Example:
        >>> convolve([1.0, 2.0], [1.0, 1.0, 1.0]).tolist()
        [1.0, 3.0, 3.0, 2.0]
    """
    if mode not in _MODES:
        raise ShapeError.here(f"convolve: expected mode full, same or valid, got {mode!r}")
    x, w = alike(A, B)
    left, right = axes if axes is not None else (range(x.ndim), range(x.ndim))
    pairs = [(a % x.ndim, b % w.ndim) for a, b in zip(left, right, strict=True)]
    summed = [(a % x.ndim, b % w.ndim) for a, b in zip(*dot_axes, strict=True)]
    letters = iter(string.ascii_letters)
    of_x, of_w = ([next(letters) for _ in range(v.ndim)] for v in (x, w))
    for a, b in summed:
        of_w[b] = of_x[a]
    out: list[str] = []
    terms: list[str] = [*of_x]
    for a, b in sorted(pairs, reverse=True):  # from the last, as each axis becomes two
        x = _windows(x, a, w.shape[b], _kept(mode, x.shape[a], w.shape[b]))
        place = next(letters)
        terms[a : a + 1] = [place, of_w[b]]
        out.append(place)
    order = sorted(range(len(pairs)), key=lambda i: pairs[i], reverse=True)
    places = [out[order.index(i)] for i in range(len(pairs))]
    used_x, used_w = ({p[k] for p in (*pairs, *summed)} for k in (0, 1))
    rest_x = [s for i, s in enumerate(of_x) if i not in used_x]
    rest_w = [s for i, s in enumerate(of_w) if i not in used_w]
    turned = flip(w, axis=tuple([b for _, b in pairs])) if pairs else w
    result = "".join((*rest_x, *rest_w, *places))
    return einsum(f"{''.join(terms)},{''.join(of_w)}->{result}", x, turned)


def _windows(x: Any, axis: int, width: int, kept: range) -> Any:
    """Split an axis in two: the kept positions of a full convolution, and the elements of each."""
    ends = [(width - 1, width - 1) if i == axis else (0, 0) for i in range(x.ndim)]
    places = np.add.outer(np.arange(kept.start, kept.stop), np.arange(width))
    return take(pad(x, ends), places, axis)


guard(globals())
