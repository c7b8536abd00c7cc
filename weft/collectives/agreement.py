"""Checks that all ranks have the same shapes, or the same values by their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from weft.errors import DistributedError
from weft.ir.node import at_user_line
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group, bytes_of


def digests(arrays: Mapping[str, Array | None]) -> list[str]:
    """A line for each array: its name and a digest of its elements.

    Example:
        >>> digests({"w": np.zeros(2, np.float32), "b": None})
        ['w af5570f5a1810b7a', 'b no value']
    """
    return [f"{name} {_digest(x)}" for name, x in arrays.items()]


def _digest(x: Array | None) -> str:
    if x is None:
        return "no value"
    return hashlib.sha256(bytes_of(np.ascontiguousarray(x)).data).hexdigest()[:16]


def check_same(name: str, group: Group, title: str, lines: Sequence[str]) -> None:
    """Check that all ranks have the same lines.

    Args:
        name: the caller, for the error message.
        title: what the lines describe.

    Raises:
        DistributedError: they differ; shows the first different line of both ranks.
    """
    told = difference(name, group, title, lines)
    if told:
        raise DistributedError(told)


def difference(name: str, group: Group, title: str, lines: Sequence[str]) -> str:
    """The first difference between a rank's lines and the first rank's; empty if there is none."""
    data = "\n".join(lines).encode()
    texts = [d.decode().split("\n") for d in collective.all_gather_bytes(group, data, title)]
    for rank, other in zip(group.ranks, texts, strict=True):
        if other != texts[0]:
            pairs = [(a, b) for a, b in zip(texts[0], other, strict=False) if a != b]
            first, here = pairs[0] if pairs else (f"{len(texts[0])}", f"{len(other)} tensors")
            return (
                f"{name}: {title} differ: rank {group.ranks[0]} has {first}, rank {rank} has "
                f"{here}{at_user_line()}"
            )
    return ""
