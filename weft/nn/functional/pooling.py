"""Pooling: the maximum, mean or norm of each window of an image."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import cast, lazy_of, recorded, wrap
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import float64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.functional.layout import check_image, of_rank, sizes_of
from weft.ops.declaration import catalogue
from weft.ops.pooling import pooling as nodes
from weft.ops.shape.layout import batched, channels_last, to_last

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d",
    "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _image(function: Any, x: Value, spatial: int, *rest: Any, **static: Any) -> Any:
    return batched(spatial + 2)(channels_last(function))(x, *rest, **static)


@recorded
def _max_pool(x: Value, *, spatial: int, indices: bool, **static: Any) -> Any:
    function = nodes.max_pool_indices if indices else nodes.max_pool_padded
    return _image(function, x, spatial, **static)


@recorded
def _avg_pool(x: Value, *, spatial: int, **static: Any) -> Value:
    return _image(nodes.avg_pool_padded, x, spatial, **static)


@recorded
def _lp_pool(x: Value, *, spatial: int, p: float, **static: Any) -> Value:
    return _image(nodes.lp_pool, x, spatial, p, **static)


@recorded
def _adaptive_avg_pool(x: Value, *, spatial: int, output: tuple[int, ...]) -> Value:
    return _image(nodes.adaptive_avg_pool, x, spatial, output)


@recorded
def _adaptive_max_pool(x: Value, *, spatial: int, indices: bool, output: Any) -> Any:
    function = nodes.adaptive_max_pool_indices if indices else nodes.adaptive_max_pool
    return _image(function, x, spatial, output)


@recorded
def _max_unpool(x: Value, indices: Value, *, spatial: int, image: tuple[int, ...]) -> Value:
    def unpool(x: Value, indices: Value) -> Value:
        return nodes.max_unpool(x, to_last(indices), image)

    if len(known(x.shape)) == spatial + 1:
        indices = catalogue.expand_dims(indices, axis=0)
    return _image(unpool, x, spatial, indices)


class Windows:
    """The window options, from PyTorch's arguments."""

    def __init__(
        self, name: str, input: Any, spatial: int, kernel_size: Any, stride: Any, padding: Any = 0
    ) -> None:
        check_image(name, dims_of(input), spatial)
        _check_filled(name, dims_of(input), -spatial - 1)
        self.name = name
        self.spatial = spatial
        self.window = sizes_of(f"{name}: kernel_size", kernel_size, spatial)
        steps = self.window if stride is None or stride == () else stride
        self.strides = sizes_of(f"{name}: stride", steps, spatial)
        self.padding = sizes_of(f"{name}: padding", padding, spatial)
        _check_positive(f"{name}: kernel_size", self.window)
        _check_positive(f"{name}: stride", self.strides)
        for p, k in zip(self.padding, self.window, strict=True):
            if not 0 <= p <= k // 2:
                raise ShapeError.here(
                    f"{name}: expected a padding from 0 to half of kernel_size {self.window}, got "
                    f"{self.padding}"
                )

    @property
    def static(self) -> dict[str, Any]:
        """The arguments of the recorded function."""
        return {"spatial": self.spatial, "window": self.window, "strides": self.strides}


def _check_filled(name: str, shape: tuple[int, ...], first: int) -> None:
    """Check that an input has channels and pixels: only N may be 0."""
    if 0 in shape[first:]:
        raise ShapeError.here(
            f"{name}: expected sizes above 0 except for N, got shape {show(shape)}"
        )


def _check_positive(name: str, sizes: tuple[int, ...]) -> None:
    if min(sizes) < 1:
        raise ShapeError.here(f"{name}: expected numbers from 1, got {sizes}")


def _max_pool_in(spatial: int):
    @of_rank(spatial)
    def max_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        """Max pooling of {image}, optionally with indices.

        Args:
            input: (N, C, spatial...) or (C, spatial...).
            kernel_size: the size of the windows; one number stands for all dimensions.
            stride: the steps of the windows, by default `kernel_size`.
            padding: how much is added at both ends of each dimension, at most half of
                `kernel_size`; it never is the maximum.
            dilation: the steps within a window.
            ceil_mode: also windows that begin inside and end outside.
            return_indices: also return where the maxima are: their pixels' numbers in the channel,
                row by row.
        """
        name = f"max_pool{spatial}d"
        windows = Windows(name, input, spatial, kernel_size, stride, padding)
        steps = sizes_of(f"{name}: dilation", dilation, spatial)
        _check_positive(f"{name}: dilation", steps)
        dtype = lazy_of(input).type.dtype
        if dtype.is_integer:
            wide = wrap(cast(lazy_of(input), float64))
            same = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
            pooled = max_pool(wide, *same)
            return (pooled[0].to(dtype), pooled[1]) if return_indices else pooled.to(dtype)
        return _max_pool(
            input, **windows.static, padding=windows.padding, indices=bool(return_indices),
            dilation=steps, ceil=bool(ceil_mode),
        )  # fmt: skip

    return max_pool


max_pool1d, max_pool2d, max_pool3d = map(_max_pool_in, (1, 2, 3))


def _average(
    spatial: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Average pooling with any number of spatial dimensions."""
    name = f"avg_pool{spatial}d"
    if divisor_override == 0:
        raise ArgumentError.here(f"{name}: expected divisor_override other than 0")
    windows = Windows(name, input, spatial, kernel_size, stride, padding)
    return _avg_pool(
        input, **windows.static, padding=windows.padding, ceil=bool(ceil_mode),
        count_include_pad=bool(count_include_pad), divisor=divisor_override,
    )  # fmt: skip


@arguments_of(max_pool1d)
def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Average pooling of (N, C, L) or (C, L).

    Args:
        padding: how many zeros are added at both ends of each dimension, at most half of
            `kernel_size`.
        count_include_pad: the added zeros count in the mean.
    """
    return _average(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _avg_pool_in(spatial: int):
    @arguments_of(avg_pool1d)
    @of_rank(spatial)
    def avg_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        """Average pooling of {image}.

        Args:
            divisor_override: what sums are divided by, instead of the number of elements.
        """
        return _average(
            spatial, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override,
        )  # fmt: skip

    return avg_pool


avg_pool2d, avg_pool3d = map(_avg_pool_in, (2, 3))


def _lp_pool_in(spatial: int):
    @arguments_of(max_pool1d)
    @of_rank(spatial)
    def lp_pool(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        """The `norm_type`-norm of each window of {image}.

        Args:
            norm_type: the exponent of the norm.
        """
        windows = Windows(f"lp_pool{spatial}d", input, spatial, kernel_size, stride)
        return _lp_pool(input, **windows.static, p=float(norm_type), ceil=bool(ceil_mode))

    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool_in, (1, 2, 3))


def _output(name: str, input: Any, spatial: int, output_size: Any) -> tuple[int, ...]:
    """The requested sizes; `None` keeps the input's."""
    shape = dims_of(input)
    check_image(name, shape, spatial)
    sizes = output_size if isinstance(output_size, list | tuple) else (output_size,) * spatial
    if len(sizes) != spatial:
        raise ShapeError.here(f"{name}: expected {spatial} output sizes, got {tuple(sizes)}")
    own = shape[-spatial:]
    return tuple([d if s is None else int(s) for s, d in zip(sizes, own, strict=True)])


def _adaptive_avg_pool_in(spatial: int):
    @of_rank(spatial)
    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:
        """Average pooling of {image} to the requested sizes.

        Args:
            input: (N, C, spatial...) or (C, spatial...).
            output_size: the output's spatial sizes; one number stands for all, and `None` keeps
                the input's.
        """
        name = f"adaptive_avg_pool{spatial}d"
        output = _output(name, input, spatial, output_size)
        _check_filled(name, dims_of(input), -spatial)
        return _adaptive_avg_pool(input, spatial=spatial, output=output)

    return adaptive_avg_pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(
    _adaptive_avg_pool_in, (1, 2, 3)
)


def _adaptive_max_pool_in(spatial: int):
    @arguments_of(adaptive_avg_pool1d, max_pool1d)
    @of_rank(spatial)
    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        """Max pooling of {image} to the requested sizes."""
        name, several = f"adaptive_max_pool{spatial}d", bool(return_indices)
        output = _output(name, input, spatial, output_size)
        _check_filled(name, dims_of(input), 1)
        return _adaptive_max_pool(input, spatial=spatial, output=output, indices=several)

    return adaptive_max_pool


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(
    _adaptive_max_pool_in, (1, 2, 3)
)


def unpool(
    spatial: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any,
    output_size: Any,
) -> Any:  # fmt: skip
    """Zeros with the maxima at their indices."""
    name = f"max_unpool{spatial}d"
    windows = Windows(name, input, spatial, kernel_size, stride, padding)
    if dims_of(indices) != dims_of(input):
        raise ShapeError.here(
            f"{name}: expected indices of the input's shape {show(dims_of(input))}, got "
            f"{show(dims_of(indices))}"
        )
    places = zip(
        dims_of(input)[-spatial:], windows.strides, windows.padding, windows.window, strict=True
    )
    image = tuple([(d - 1) * s - 2 * p + k for d, s, p, k in places])
    if output_size is not None:
        image = _unpooled(name, tuple(map(int, output_size)), image, windows.strides)
    return _max_unpool(input, indices, spatial=spatial, image=image)


def _unpooled(
    name: str, requested: tuple[int, ...], least: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[int, ...]:
    """The requested sizes, which may differ from the default by less than a stride.

    Raises:
        ShapeError: they differ by more.
    """
    spatial = len(least)
    size = requested[-spatial:]
    near = [abs(n - d) < s for n, d, s in zip(size, least, strides, strict=False)]
    if len(requested) not in (spatial, spatial + 2) or not all(near):
        ranges = [f"{d - s + 1} to {d + s - 1}" for d, s in zip(least, strides, strict=True)]
        raise ShapeError.here(
            f"{name}: expected an output_size of {', '.join(ranges)}, got {requested}"
        )
    return size


def _max_unpool_in(spatial: int):
    @arguments_of(max_pool1d)
    @of_rank(spatial)
    def max_unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Any:  # fmt: skip
        """The inverse of `max_pool{rank}` with `return_indices`: {image}, zeros elsewhere.

        Args:
            input: maxima, (N, C, spatial...) or (C, spatial...).
            indices: where they are, of the same shape.
            padding: that of the pooling.
            output_size: the spatial sizes, or those of all dimensions, if several fit.
        """
        return unpool(spatial, input, indices, kernel_size, stride, padding, output_size)

    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool_in, (1, 2, 3))
