"""`torch.ops.torchvision`: operators that torchvision has compiled for PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

from weft.eager.functions.creation.constructor import from_numpy
from weft.ops.image.suppression import kept

__all__ = ["cuda_version", "nms", "roi_align"]


def nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """The indices of boxes that overlap no better box that is kept, the best first."""
    found = kept(dets.detach().numpy(), scores.detach().numpy(), iou_threshold)
    return from_numpy(found)


def roi_align(*arguments: Any) -> Any:
    """The features of regions, by torchvision's own function in Python."""
    return importlib.import_module("torchvision.ops.roi_align")._roi_align(*arguments)


def cuda_version() -> int:
    """That of torchvision's build: there is none."""
    return -1
