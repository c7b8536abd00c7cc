"""Recurrent cells, one step of a recurrent layer: `RNNCell`, `LSTMCell`, `GRUCell`."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any

from weft.eager.functions.creation.constructor import empty
from weft.eager.tensor.argument import dims_of
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional import recurrent as nodes
from weft.nn.layer.base import Layer, options
from weft.nn.parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


def several(x: Any) -> tuple[Any, ...]:
    """Results as a tuple; a single one as a tuple of one."""
    return x if isinstance(x, tuple) else (x,)


@options
class RNNCellBase(Layer):
    """Weights of a cell, with `num_chunks` times as many rows as a state has.

    Args:
        input_size: width of the inputs.
        hidden_size: width of the states.
        bias: whether there are biases.
        num_chunks: how many times as many rows the weights have.
    """

    input_size: int
    hidden_size: int
    bias: bool
    num_chunks: InitVar[int]
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = "input_size, hidden_size, bias=True"

    def __post_init__(self, num_chunks: int, device: Any, dtype: Any) -> None:
        rows, options = num_chunks * self.hidden_size, {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty(rows, self.input_size, **options))
        self.weight_hh = Parameter(empty(rows, self.hidden_size, **options))
        self.bias_ih = Parameter(empty(rows, **options)) if self.bias else None
        self.bias_hh = Parameter(empty(rows, **options)) if self.bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, cell: Any, input: Any, states: list[Any], **static: Any) -> tuple[Any, ...]:
        shape = dims_of(input)
        if len(shape) not in (1, 2) or shape[-1] != self.input_size:
            raise ShapeError.here(
                f"{type(self).__name__}: expected an input (N, {self.input_size}) or "
                f"({self.input_size}), got {show(shape)}"
            )
        single = len(shape) == 1
        expected = (*shape[:-1], self.hidden_size)
        for state in states:
            if state is not None and dims_of(state) != expected:
                raise ShapeError.here(
                    f"{type(self).__name__}: expected a state of shape {show(expected)}, got "
                    f"{show(dims_of(state))}"
                )
        if single:
            input = nodes.widened(input, axis=0)
            states = [None if s is None else nodes.widened(s, axis=0) for s in states]
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        after = several(cell(input, *states, *weights, **static))
        return tuple([nodes.narrowed(y, axis=0) for y in after]) if single else after


class RNNCell(RNNCellBase):
    """One step of `RNN`.

    Args:
        nonlinearity: `tanh` or `relu`.
    """

    _shown = "input_size, hidden_size, bias=True, nonlinearity=tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError.here(
                f"RNNCell: expected nonlinearity 'tanh' or 'relu', got {nonlinearity!r}"
            )
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(N, input_size) to the next state (N, hidden_size)."""
        return self._step(nodes.rnn_cell, input, [hx], relu=self.nonlinearity == "relu")[0]


class LSTMCell(RNNCellBase):
    """One step of `LSTM`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """(N, input_size) to the next states h and c (N, hidden_size)."""
        h, c = self._step(nodes.lstm_cell, input, [None, None] if hx is None else list(hx))
        return h, c


class GRUCell(RNNCellBase):
    """One step of `GRU`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(N, input_size) to the next state (N, hidden_size)."""
        return self._step(nodes.gru_cell, input, [hx])[0]
