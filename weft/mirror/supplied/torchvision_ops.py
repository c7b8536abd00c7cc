"""`torch.ops.torchvision`: operators that torchvision has in C++, for PyTorch alone."""

from __future__ import annotations

from typing import Any, NoReturn

from weft import ops
from weft.collectives.elements import array
from weft.eager.functions.api import Tensor, cat
from weft.eager.tensor.dispatch import leaf, recorded, wrap
from weft.ir.dtype import int32
from weft.mirror.supplied.operators import CustomOp

__all__ = [
    "cuda_version", "deform_conv2d", "nms", "ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool",
]  # fmt: skip

_roi_align = recorded(ops.roi_align)
_roi_pool = recorded(ops.roi_pool)
_deform_conv2d = recorded(ops.deform_conv2d)


def cuda_version() -> int:
    """The version of CUDA: none."""
    return -1


@CustomOp
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of boxes that overlap no better one, best first; see `weft.ops.image.region`."""
    return wrap(leaf(ops.nms(array(dets), array(scores), float(iou_threshold))))


@CustomOp
def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Means over bins of boxes, (K, C, pooled_height, pooled_width); gradients to `input`."""
    size, boxes = (int(pooled_height), int(pooled_width)), rois.detach().to(input.dtype)
    how = {"size": size, "scale": float(spatial_scale), "aligned": bool(aligned)}
    none = input.new_zeros((0, input.shape[1], *size))
    if sampling_ratio > 0 and len(boxes):
        return _roi_align(input, boxes, samples=(sampling_ratio, sampling_ratio), **how)
    places: dict[tuple[int, int], list[int]] = {}  # boxes by the points that their bins need
    for i, grid in enumerate(ops.region_samples(array(boxes), **how).tolist()):
        places.setdefault(tuple(grid), []).append(i)
    parts = [
        _roi_align(input, boxes[rows], samples=grid, **how)
        if 0 not in grid
        else input.new_zeros((len(rows), *none.shape[1:]))
        for grid, rows in places.items()
    ]
    order = [i for rows in places.values() for i in rows]
    return cat([none, *parts])[sorted(range(len(order)), key=order.__getitem__)]


@CustomOp
def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Largest values over bins of boxes, (K, C, pooled_height, pooled_width), and their pixels."""
    size, boxes = (int(pooled_height), int(pooled_width)), array(rois.detach().to(input.dtype))
    pixels = ops.region_bins(boxes, size, float(spatial_scale), tuple(input.shape[2:]))
    values, places = _roi_pool(input, wrap(leaf(pixels)), size=size)
    return values, places.to(int32)


@CustomOp
def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int,
    stride_w: int, pad_h: int, pad_w: int, dil_h: int, dil_w: int, n_weight_grps: int,
    n_offset_grps: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """A convolution that reads each point of its kernel at an offset."""
    return _deform_conv2d(
        input, weight, offset, bias, *[mask] * bool(use_mask), stride=(stride_h, stride_w),
        padding=(pad_h, pad_w), dilation=(dil_h, dil_w), groups=n_weight_grps,
        offset_groups=n_offset_grps,
    )  # fmt: skip


@CustomOp
def refused(*arguments: Any) -> NoReturn:
    """What Weft lacks: torchvision looks it up when it is imported.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "torch.ops.torchvision: this operator is compiled for PyTorch; Weft has nms, roi_align, "
        "roi_pool and deform_conv2d"
    )


ps_roi_align = ps_roi_pool = refused
