"""Sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.nn.layer.packed_sequence import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pad_packed_sequence,
)
from weft.ops.declaration import catalogue
from weft.ops.refusal import guard

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


@recorded
def _padded(*xs: Value, batch_first: bool, value: float, left: bool) -> Value:
    longest = max(known(x.shape)[0] for x in xs)
    rows: list[Value] = []
    for x in xs:
        dims = known(x.shape)
        more = longest - dims[0]
        pads = ((more, 0) if left else (0, more), *[(0, 0)] * (len(dims) - 1))
        rows.append(catalogue.pad(x, paddings=pads, value=value))
    return catalogue.stack(*rows, axis=0 if batch_first else 1)


def pad_sequence(
    sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:  # fmt: skip
    """Sequences (L_i, ...) padded and stacked: (L, N, ...).

    Args:
        sequences: several tensors.
        batch_first: the result is (N, L, ...).
        padding_value: what is added.
        padding_side: `right` or `left`.

    Raises:
        ShapeError: there are no sequences, or their entries have different shapes.
    """
    if not isinstance(sequences, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DTypeError.here(
            f"pad_sequence: expected several sequences, got {type(sequences).__name__}"
        )
    shapes = [dims_of(x) for x in sequences]
    if not shapes or any(not s or s[1:] != shapes[0][1:] for s in shapes):
        listed = ", ".join(map(show, shapes)) or "none"
        raise ShapeError.here(
            f"pad_sequence: expected sequences (L, ...) with entries of one shape, got {listed}"
        )
    if padding_side not in ("left", "right"):
        raise ArgumentError.here(
            f"pad_sequence: expected padding_side 'left' or 'right', got {padding_side!r}"
        )
    return _padded(
        *sequences, batch_first=bool(batch_first), value=padding_value,
        left=padding_side == "left",
    )  # fmt: skip


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences that `pad_sequence` padded, without the padding.

    Args:
        padded_sequences: (L, N, ...).
        lengths: of each sequence.
        batch_first: the input is (N, L, ...).
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i, :n] for i, n in enumerate(_numbers(lengths))]


def _numbers(lengths: Any) -> list[int]:
    return lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)


@arguments_of(pad_sequence, pack_padded_sequence)
def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (L_i, ...) packed; see `pack_padded_sequence`.

    Raises:
        ShapeError: there are no sequences, their entries have different shapes, or they are not
            sorted.

    >>> import weft as wf
    >>> packed = pack_sequence([wf.tensor([1, 2, 3]), wf.tensor([4, 5])])
    >>> [x.tolist() for x in unpack_sequence(packed)]
    [[1, 2, 3], [4, 5]]
    """
    lengths = [dims_of(x)[0] for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences that were packed.

    Args:
        packed_sequences: what `pack_sequence` gave.
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


guard(globals())
