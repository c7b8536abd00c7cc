"""Samples as WAV files."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np

from weft.errors import ShapeError


def wav(samples: Any, sample_rate: int) -> tuple[bytes, int, int]:
    """Samples between -1 and 1 as a 16-bit WAV file; its numbers of channels and frames.

    Args:
        samples: `[frames]` or `[frames, channels]`.
        sample_rate: frames a second.

    Raises:
        ShapeError: another shape.
    """
    array = np.asarray(samples, np.float32)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not 0 < array.shape[1] < 65536:
        raise ShapeError(f"audio: expected [frames] or [frames, channels], got {array.shape}")
    frames, channels = array.shape
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((np.clip(array, -1, 1) * 32767).astype("<i2").tobytes())
    return file.getvalue(), channels, frames
