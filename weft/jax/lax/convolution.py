"""Convolutions under the names of `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError
from weft.jax.array import Array
from weft.jax.config import without_effect
from weft.jax.lax.structure import rev
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.ops.convolution import correlation

jnp: Any = _numpy

__all__ = [
    "ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_transpose", "conv_with_general_padding", "padtype_to_pads",
]  # fmt: skip

_correlate: Final = recorded(correlation.correlate_spread)


class ConvDimensionNumbers(NamedTuple):
    """For the image, the kernel and the result: batch (or output) axis, feature axis, others."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Axes from letters such as `("NHWC", "HWIO", "NHWC")`.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if len(rhs_shape) != rank:
        raise ArgumentError.here(
            f"conv_dimension_numbers: expected two arrays of one rank, got {rank} and "
            f"{len(rhs_shape)}"
        )
    if dimension_numbers is None:
        usual = tuple(range(rank))
        return ConvDimensionNumbers(usual, usual, usual)
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "IO"]
    parts = [("NC", lhs), ("OI", rhs), ("NC", out)]
    if any([len(text) != rank for _, text in parts]):
        raise ArgumentError.here(
            f"conv_dimension_numbers: expected {rank} letters each, got {dimension_numbers}"
        )
    specs = [tuple([text.index(c) for c in (*pair, *spatial)]) for pair, text in parts]
    return ConvDimensionNumbers(*specs)


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:  # fmt: skip
    """Pairs of paddings for "SAME", "SAME_LOWER" or "VALID"."""
    if not isinstance(padding, str):
        return [(int(a), int(b)) for a, b in padding]
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise ArgumentError.here(f"padding: expected SAME, SAME_LOWER or VALID, got {padding!r}")
    found: list[tuple[int, int]] = []
    for n, k, s in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        low = total // 2 if name == "SAME" else total - total // 2
        found.append((low, total - low))
    return found


def spans(sizes: Sequence[int], apart: Sequence[int]) -> list[int]:
    """Sizes with elements this far apart."""
    return [(n - 1) * d + 1 if n else 0 for n, d in zip(sizes, apart, strict=True)]


def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: Any = None, preferred_element_type: Any = None,
    **_: Any,
) -> Array:  # fmt: skip
    """The convolution of images with a kernel, in any layout.

    Args:
        lhs_dilation: how far elements of the image are apart; between them are zeros.
        rhs_dilation: how far elements of the kernel are apart.
        feature_group_count: groups of features, each with a part of the kernels.

    Raises:
        ArgumentError: `batch_group_count` other than 1.
    """
    without_effect("conv", precision=precision)
    x, w = promoted(lhs, rhs)
    if batch_group_count != 1:
        raise ArgumentError.here("conv_general_dilated: expected batch_group_count=1")
    spec = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    rank = x.ndim - 2
    steps = tuple(window_strides) or (1,) * rank
    spread = (1,) * rank if rhs_dilation is None else tuple(rhs_dilation)
    x = jnp.transpose(x, (spec.lhs_spec[0], *spec.lhs_spec[2:], spec.lhs_spec[1]))
    w = jnp.transpose(w, (*spec.rhs_spec[2:], spec.rhs_spec[1], spec.rhs_spec[0]))
    apart = (1,) * rank if lhs_dilation is None else tuple(lhs_dilation)
    seen = spans(x.shape[1:-1], apart), spans(w.shape[:rank], spread)
    y = _correlate(
        x, w, strides=steps, padding=tuple(padtype_to_pads(*seen, steps, padding)), apart=apart,
        dilation=spread, groups=feature_group_count,
    )  # fmt: skip
    order = [spec.out_spec.index(i) for i in range(rank + 2)]
    places = (0, rank + 1, *range(1, rank + 1))
    y = jnp.transpose(y, tuple([places[i] for i in order]))
    return y if preferred_element_type is None else y.astype(preferred_element_type)


def conv(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, precision: Any = None, **_: Any
) -> Array:
    """The convolution of (batch, feature, ...) images."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision)


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    **_: Any,
) -> Array:  # fmt: skip
    """The same with dilations."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


def _transposed_pads(k: int, s: int, padding: str) -> tuple[int, int]:
    total = k + s - 2 if padding == "SAME" else k + s - 2 + max(k - s, 0)
    low = k - 1 if s > k - 1 else -(-total // 2)
    return (low, total - low) if padding == "SAME" else (k - 1, total - (k - 1))


def conv_transpose(
    lhs: Any, rhs: Any, strides: Sequence[int], padding: Any, rhs_dilation: Any = None,
    dimension_numbers: Any = None, transpose_kernel: bool = False, precision: Any = None,
    **_: Any,
) -> Array:  # fmt: skip
    """A convolution of an image whose elements are strides apart: larger than the image."""
    rank = jnp.ndim(lhs) - 2
    letters = "HWD"[:rank]
    if dimension_numbers is None:
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    spec = conv_dimension_numbers(jnp.shape(lhs), jnp.shape(rhs), dimension_numbers)
    spread = (1,) * rank if rhs_dilation is None else tuple(rhs_dilation)
    sizes = [jnp.shape(rhs)[a] for a in spec.rhs_spec[2:]]
    if isinstance(padding, str):
        pairs = zip(spans(sizes, spread), strides, strict=True)
        padding = [_transposed_pads(k, s, padding.upper()) for k, s in pairs]
    if transpose_kernel:
        rhs = rev(rhs, spec.rhs_spec[2:])
        rhs = jnp.swapaxes(rhs, spec.rhs_spec[0], spec.rhs_spec[1])
    return conv_general_dilated(
        lhs, rhs, (1,) * rank, padding, strides, spread, spec, precision=precision
    )
