"""JPEG files to measure with: smooth pictures of 300 x 300, which decode as photographs do."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

MEAN: Final = (0.485, 0.456, 0.406)
STD: Final = (0.229, 0.224, 0.225)


def write_pictures(folder: Path, count: int) -> None:
    """Write so many files into a subfolder, which is their class."""
    from weft.data import transforms
    from weft.formats import image

    random = np.random.default_rng(0)
    (folder / "class").mkdir()
    coarse = random.integers(0, 256, (count, 10, 10, 3), np.uint8)
    for number, pixels in enumerate(coarse):
        smooth = transforms.Resize((300, 300))(pixels)
        (folder / "class" / f"{number}.jpg").write_bytes(image.encode(smooth, "JPEG"))
