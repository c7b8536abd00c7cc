"""Small functions that PyTorch's own modules share: programs that copy a module import them."""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Sequence
from typing import Any

from weft.nn import Module, ModuleList

__all__ = ["clones", "indented", "list_with_default", "unwrapped"]


def clones(module: Module, N: int) -> ModuleList:
    """Copies of a module.

    >>> from weft import nn
    >>> len(clones(nn.Linear(2, 2), 3))
    3
    """
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def indented(s_: str, numSpaces: int) -> str:
    """A text whose lines after the first are indented, except empty ones.

    >>> indented("a\\nb", 2)
    'a\\n  b'
    """
    first, newline, rest = s_.partition("\n")
    return first + newline + textwrap.indent(rest, " " * numSpaces)


def list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """Sizes of the last dimensions, `None` replaced by those of an input.

    Raises:
        ValueError: the input has no more dimensions than there are sizes.

    >>> list_with_default([None, 3], [8, 7, 5])
    [7, 3]
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [
        d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)
    ]


def unwrapped(value: Any) -> Any:
    """A value that is not `None`.

    Raises:
        AssertionError: it is.
    """
    if value is None:
        raise AssertionError("Unwrapping null optional")
    return value
