"""Sampling of images at given coordinates: `grid_sample`, `affine_grid`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft import ops
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import kind_of, recorded
from weft.eager.tensor.elementwise import promoted
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show

__all__ = ["affine_grid", "grid_sample"]

_grid_sample = recorded(ops.grid_sample)
_affine_grid = recorded(ops.affine_grid)
_MODES: Final = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
_PADDINGS: Final = ("zeros", "border", "reflection")


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """(N, C, spatial...) sampled at the coordinates (N, new spatial..., axes); differentiable.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: coordinates from -1 to 1, the last spatial axis first.
        mode: `bilinear` (also for 3 spatial axes), `nearest`, or `bicubic` (2 axes).
        padding_mode: values outside the image: `zeros`, `border` or `reflection`.
        align_corners: -1 and 1 are the centers of the corner pixels, instead of the image's edges.

    Raises:
        ShapeError, ValueError: shapes, mode or padding mode do not fit.
    """
    image, places = dims_of(input), dims_of(grid)
    rank = len(image) - 2
    if rank not in (2, 3) or len(places) != rank + 2 or places[-1] != rank:
        raise ShapeError.here(
            f"grid_sample: expected (N, C, H, W) and (N, h, w, 2), or (N, C, D, H, W) and "
            f"(N, d, h, w, 3), got {show(image)} and {show(places)}"
        )
    if image[0] != places[0] or 0 in image[2:]:
        raise ShapeError.here(
            f"grid_sample: expected as many grids as images, which are not empty, got "
            f"{show(image)} and {show(places)}"
        )
    if mode not in _MODES or (mode == "bicubic" and rank == 3):
        raise ArgumentError.here(
            f"grid_sample: expected mode of {', '.join(_MODES)} that fits {rank} spatial axes, "
            f"got {mode!r}"
        )
    if padding_mode not in _PADDINGS:
        raise ArgumentError.here(
            f"grid_sample: expected padding_mode of {', '.join(_PADDINGS)}, got {padding_mode!r}"
        )
    how = {"mode": _MODES[mode], "padding": padding_mode, "align_corners": bool(align_corners)}
    return _grid_sample.on(kind_of(input, grid), *promoted(input, grid, floats=True), **how)


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """The grid for `grid_sample` of the affine maps `theta`, (N, 2, 3) or (N, 3, 4).

    Args:
        theta: the maps, (N, 2, 3) or (N, 3, 4).
        size: of the output of `grid_sample`: (N, C, H, W) or (N, C, D, H, W).
        align_corners: as in `grid_sample`.

    Raises:
        ShapeError: `theta` has another shape.
    """
    rank, dims = len(size) - 2, dims_of(theta)
    if rank not in (2, 3) or dims != (size[0], rank, rank + 1):
        raise ShapeError.here(
            f"affine_grid: expected theta of shape ({size[0]}, {rank}, {rank + 1}), got "
            f"{show(dims)}"
        )
    return _affine_grid(theta, size=tuple(size[2:]), align_corners=bool(align_corners))
