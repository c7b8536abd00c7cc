"""Images as the networks were trained on them, and the names of what they see."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError

MEAN: Final = np.array([103.939, 116.779, 123.68], np.float32)
"""Of ImageNet's blue, green and red."""


def _floating(x: Any) -> tuple[Any, Any]:
    """The images as float32, and the module with functions of them."""
    if tf.is_tensor(x):
        return tf, tf.cast(x, tf.float32)
    return np, np.asarray(x, np.float32)


def blue_first(x: Any, data_format: str | None = None) -> Any:
    """Images as blue, green and red, without ImageNet's mean: of VGG and ResNet.

    Args:
        x: (..., 3), red, green and blue from 0 to 255; an array or a tensor.
        data_format: accepted; channels are the last.
    """
    del data_format
    library, found = _floating(x)
    return library.subtract(found[..., ::-1], MEAN)


def from_minus_one(x: Any, data_format: str | None = None) -> Any:
    """Images from -1 to 1: of MobileNets.

    Args:
        x: (..., 3), from 0 to 255; an array or a tensor.
        data_format: accepted; channels are the last.
    """
    del data_format
    library, found = _floating(x)
    return library.subtract(library.divide(found, 127.5), 1.0)


CLASSES: Final = "imagenet_class_index.json"


def decode_predictions(preds: Any, top: int = 5) -> list[list[tuple[str, str, float]]]:
    """The likeliest classes of images, with ImageNet's numbers and names.

    Args:
        preds: probabilities (images, 1000).
        top: how many of each image.

    Returns:
        For each image (number, name, probability), the likeliest first.

    Names are read from Keras's file `imagenet_class_index.json` in the folder `models` of
    `KERAS_HOME`, by default `~/.keras`; nothing is downloaded.

    Raises:
        ShapeError: `preds` is not of that shape.
        ArgumentError: there is no such file.
    """
    rows = np.asarray(preds)
    if rows.ndim != 2 or rows.shape[1] != 1000:
        raise ShapeError(f"decode_predictions: expected shape (images, 1000), got {rows.shape}")
    file = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "models" / CLASSES
    if not file.exists():
        raise ArgumentError(f"decode_predictions: expected Keras's list of classes as {file}")
    names = json.loads(file.read_text())
    best = np.argsort(rows, axis=1)[:, ::-1][:, :top]
    return [
        [(*names[str(i)], row[i]) for i in found] for row, found in zip(rows, best, strict=True)
    ]
