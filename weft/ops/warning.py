"""Warnings that point to the user's line, wherever in the package they are raised."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from weft.ir.look import looks
from weft.ir.node import NOT_THE_USER


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost line outside the package."""
    looks.count += 1
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(NOT_THE_USER):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
