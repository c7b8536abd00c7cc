"""Calls that compute many things apart, such as the update of each parameter.

What is known of one serves all of its types: its result types, and its launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from weft.ir.node import TensorType


class Piece(NamedTuple):
    """A part of a call: the same function on some inputs alone.

    Attributes:
        inputs: their numbers among the call's.
        outputs: the numbers of its results.
        static: its attributes; equal pieces share the object.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    static: dict[str, Any]

    def key(self, types: Sequence[TensorType]) -> tuple[int, ...]:
        """Equal for pieces that do the same on inputs of the same types."""
        return (id(self.static), *[id(types[i]) for i in self.inputs])


PIECES: Final[dict[Any, Callable[..., Sequence[Piece]]]] = {}
"""For functions that consist of pieces what these are, given the attributes of a call."""


def types_of_pieces(
    pieces: Sequence[Piece], types: Sequence[TensorType],
    derive: Callable[[Sequence[TensorType], dict[str, Any]], tuple[TensorType, ...]],
) -> tuple[TensorType, ...]:  # fmt: skip
    """The types of a call's results."""
    known: dict[tuple[int, ...], tuple[TensorType, ...]] = {}
    found: dict[int, TensorType] = {}
    for piece in pieces:
        key = piece.key(types)
        if key not in known:
            known[key] = derive([types[i] for i in piece.inputs], piece.static)
        found.update(zip(piece.outputs, known[key], strict=True))
    return tuple([found[i] for i in range(len(found))])
