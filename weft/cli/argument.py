"""Types of command-line arguments: a wrong one is refused with a sentence."""

from __future__ import annotations

import argparse
import math
from typing import Final

MOST_OF_A_HOST: Final = 4096
"""Ranks: more than any host has cores."""


def positive(text: str) -> int:
    """An integer from 1.

    Raises:
        ArgumentTypeError: it is smaller, or none.
    """
    return _whole(text, 1)


def count(text: str) -> int:
    """An integer from 0.

    Raises:
        ArgumentTypeError: it is smaller, or none.
    """
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"expected an integer from {least}, got {text!r}")
    return value


def seconds(text: str) -> float:
    """A finite number from 0.

    Raises:
        ArgumentTypeError: it is smaller, not finite, or no number.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds from 0, got {text!r}")
    return value


def hosts(text: str) -> str:
    """Machines and how many ranks each takes, as `a:2,b:2` or `a,b`.

    Raises:
        ArgumentTypeError: a name is missing, or a number is none from 1.
    """
    for host in text.split(","):
        name, mark, number = host.partition(":")
        right = number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_OF_A_HOST
        if not name or name.split() != [name] or name.startswith("-") or (mark and not right):
            raise argparse.ArgumentTypeError(
                f"expected machines and their ranks, as a:2,b:2 (1 to {MOST_OF_A_HOST} each), got "
                f"{text!r}"
            )
    return text


def sentence(about: str) -> str:
    """A description as a sentence; names in it keep their capitals.

    Example:
        >>> sentence("look into PyTorch's files")
        "Look into PyTorch's files."
    """
    return f"{about[:1].upper()}{about[1:]}."
