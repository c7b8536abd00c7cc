"""Types of command-line arguments."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """An integer from 1.

    Raises:
        ArgumentTypeError: it is smaller.
    """
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer from 1, got {text}")
    return value
