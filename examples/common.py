"""Shared by several examples: the command line, data, and images printed as characters."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

import weft as wf
from weft.datasets import get_mnist

SHADES = " .:-=+*#%@"
VOCABULARY = 128  # ASCII


class Digits(NamedTuple):
    """Images (N, 1, 28, 28) in [0, 1] with their labels, for training and testing."""

    images: wf.Tensor
    labels: wf.Tensor
    test_images: wf.Tensor
    test_labels: wf.Tensor


def options(description: str | None, steps: int) -> argparse.ArgumentParser:
    """A command line with `--steps`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=steps, help=f"default: {steps}")
    return parser


def load_digits() -> Digits:
    """The digits bundled with Weft, or MNIST from the folder in `WEFT_DATA`."""
    mnist = get_mnist(flatten=False, onehot=False)
    parts: list[wf.Tensor] = []
    for part in (mnist.train, mnist.test):
        parts += [wf.tensor(part.images)[:, None], wf.tensor(part.labels, dtype=wf.int64)]
    return Digits(*parts)


def load_source(limit: int = 1_000_000) -> wf.Tensor:
    """The standard library's source, module after module, as ASCII codes."""
    text = ""
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        text += path.read_text(encoding="utf-8")
        if len(text) >= limit:
            break
    codes = np.frombuffer(text[:limit].encode("ascii", "replace"), np.uint8)
    return wf.tensor(codes, dtype=wf.int64)


def text_of(codes: wf.Tensor) -> str:
    """ASCII codes as text."""
    return "".join(map(chr, codes.tolist()))


def windows(codes: wf.Tensor, count: int, length: int) -> wf.Tensor:
    """`count` windows at random positions: (count, length)."""
    starts = wf.randint(0, len(codes) - length, (count, 1))
    return codes[starts + wf.arange(length)]


def draw(images: wf.Tensor) -> str:
    """Images (N, H, W) in [0, 1], side by side, as characters; every second row and column."""
    shades = (images[:, ::2, ::2].clamp(0, 1) * (len(SHADES) - 1)).round().long()
    rows = shades.permute(1, 0, 2).flatten(1).tolist()
    return "\n".join("".join(SHADES[s] for s in row).rstrip() for row in rows)
