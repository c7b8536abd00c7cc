"""`torch.ops.torchvision`: operators that torchvision has in C++, for PyTorch alone."""

from __future__ import annotations

from typing import Any, NoReturn

from weft import ops
from weft.collectives.elements import array
from weft.eager.functions.api import Tensor, cat
from weft.eager.tensor.dispatch import leaf, recorded, wrap
from weft.mirror.supplied.operators import CustomOp

__all__ = [
    "cuda_version", "deform_conv2d", "nms", "ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool",
]  # fmt: skip

_roi_align = recorded(ops.roi_align)


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
def refused(*arguments: Any) -> NoReturn:
    """What Weft lacks: torchvision looks it up when it is imported.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "torch.ops.torchvision: this operator is compiled for PyTorch; Weft has nms and roi_align"
    )


deform_conv2d = ps_roi_align = ps_roi_pool = roi_pool = refused
