"""Recurrent layers, one direction of one layer per call, and single steps."""

from __future__ import annotations

from typing import Final

from weft.eager.tensor.dispatch import Recorded, recorded
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue
from weft.ops.sequence import recurrent_layer as layer

rnn: Final[Recorded] = recorded(layer.rnn)
lstm: Final[Recorded] = recorded(layer.lstm, shown=3)
gru: Final[Recorded] = recorded(layer.gru)
rnn_cell: Final[Recorded] = recorded(layer.rnn_cell)
lstm_cell: Final[Recorded] = recorded(layer.lstm_cell)
gru_cell: Final[Recorded] = recorded(layer.gru_cell)

# states and outputs


@recorded
def unstacked(x: Value) -> tuple[Value, ...]:
    """The entries along the first dimension."""
    return catalogue.unstack.all(x, count=known(x.shape)[0], axis=0)


@recorded
def stacked(*xs: Value) -> Value:
    """Stacked along a new first dimension."""
    return catalogue.stack(*xs, axis=0)


@recorded
def joined(*xs: Value) -> Value:
    """Both directions, concatenated."""
    return catalogue.concatenate(*xs, axis=-1)


@recorded
def widened(x: Value, *, axis: int) -> Value:
    """A new dimension of size 1."""
    return catalogue.expand_dims(x, axis=axis)


@recorded
def narrowed(x: Value, *, axis: int) -> Value:
    """Without a dimension of size 1."""
    return catalogue.squeeze(x, axes=(axis,))
