"""Max pooling with random windows: `fractional_max_pool2d` and `fractional_max_pool3d`.

Source: Graham, "Fractional Max-Pooling" (2014).
"""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.functions.random.generator import rand
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn.functional.layout import check_image, sizes_of
from weft.ops.pooling import fractional as formulas

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]

Sizes = tuple[int, ...]


_fractional = recorded(formulas.fractional)


def fractional_max_pool(
    spatial: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Any,
) -> Any:  # fmt: skip
    """Max pooling with random windows in 2 or 3 spatial dimensions."""
    name, shape = f"fractional_max_pool{spatial}d", dims_of(input)
    check_image(name, shape, spatial)
    image = shape[-spatial:]
    window = sizes_of(f"{name}: kernel_size", kernel_size, spatial, one_for_all=False)
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError.here(f"{name}: expected output_size or output_ratio")
    if output_size is not None:
        output = sizes_of(f"{name}: output_size", output_size, spatial, one_for_all=False)
    else:
        several = isinstance(output_ratio, list | tuple)
        ratios = tuple(output_ratio) if several else (output_ratio,) * spatial
        output = tuple([int(d * r) for d, r in zip(image, ratios, strict=True)])
    fits = [o + k - 1 <= d for o, k, d in zip(output, window, image, strict=True)]
    if not all(fits) or shape[-spatial - 1] == 0:
        raise ShapeError.here(
            f"{name}: expected channels, and output_size + kernel_size - 1 of at most the input's "
            f"sizes, got output_size {output} and kernel_size {window} for an input {show(shape)}"
        )
    lead = shape[:-spatial] if len(shape) == spatial + 2 else (1, shape[0])
    if samples is None:
        samples = rand(*lead, spatial, dtype=input.dtype)
    elif dims_of(samples)[1:] != (lead[1], spatial) or dims_of(samples)[0] < lead[0]:
        raise ShapeError.here(
            f"{name}: expected _random_samples of shape {show((*lead, spatial))}, or more in the "
            f"first dimension, got {show(dims_of(samples))}"
        )
    else:
        samples = samples[: lead[0]]
    return _fractional(input, samples, window=window, output=output, indices=bool(return_indices))


def fractional_max_pool2d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Max pooling of (N, C, H, W) with random windows.

    Args:
        input: (N, C, spatial...) or (C, spatial...).
        kernel_size: the size of the windows; one number stands for all dimensions.
        output_size: the output's spatial sizes; or `output_ratio`.
        output_ratio: the output's sizes relative to the input's, below 1.
        return_indices: also return the indices of the maxima.
        _random_samples: numbers in [0, 1), (N, C, spatial dimensions), that choose the windows; a
            surplus is ignored.
    """
    return fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


@arguments_of(fractional_max_pool2d)
def fractional_max_pool3d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Max pooling of (N, C, D, H, W) with random windows."""
    return fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
