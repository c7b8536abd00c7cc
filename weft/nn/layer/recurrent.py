"""Recurrent layers: `RNN`, `LSTM`, `GRU`."""

from __future__ import annotations

import math
from dataclasses import InitVar
from typing import Any, Final

from weft.eager.functions.creation.constructor import empty
from weft.eager.functions.indexing.gather import index_select
from weft.eager.tensor.argument import dims_of
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional import recurrent as nodes
from weft.nn.functional.dropout import dropout
from weft.nn.layer.base import Layer, options
from weft.nn.layer.packed_sequence import PackedSequence, run_backwards, run_forwards
from weft.nn.layer.recurrent_cell import several
from weft.nn.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

_GATES: Final = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}  # rows of weights, by mode


@options
class RNNBase(Layer):
    """Weights of several layers, which run one after another.

    Args:
        mode: `RNN_TANH`, `RNN_RELU`, `GRU` or `LSTM`.
        input_size: width of the inputs.
        hidden_size: width of the states.
        num_layers: each layer takes the outputs of the one before it.
        bias: whether there are biases.
        batch_first: sequences are (N, L, width), not (L, N, width).
        dropout: of the outputs of all layers but the last, in training.
        bidirectional: a second set of weights runs backwards in time.
        proj_size: width of the states h, if smaller than `hidden_size`; only of `LSTM`.
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int = 1
    bias: bool = True
    batch_first: bool = False
    dropout: float = 0.0
    bidirectional: bool = False
    proj_size: int = 0
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = (
        "input_size, hidden_size, proj_size=0, num_layers=1, bias=True, batch_first=False, "
        "dropout=0.0, bidirectional=False"
    )

    def __post_init__(self, device: Any, dtype: Any) -> None:
        self.dropout = float(self.dropout)
        self._check_options()
        self._names: list[list[str]] = []
        for depth in range(self.num_layers):
            for reverse in range(self._directions):
                self._make_layer(depth, bool(reverse), {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _check_options(self) -> None:
        name = type(self).__name__
        if self.mode not in _GATES:
            raise ArgumentError.here(
                f"{name}: expected mode {', '.join(_GATES)}, got {self.mode!r}"
            )
        if min(self.input_size, self.hidden_size, self.num_layers) < 1:
            raise ShapeError.here(
                f"{name}: expected positive sizes, got input_size {self.input_size}, hidden_size "
                f"{self.hidden_size}, num_layers {self.num_layers}"
            )
        if not 0 <= self.dropout <= 1 or not 0 <= self.proj_size < self.hidden_size:
            raise ArgumentError.here(
                f"{name}: expected dropout from 0 to 1 and proj_size below hidden_size, got "
                f"{self.dropout} and {self.proj_size}"
            )
        if self.proj_size and self.mode != "LSTM":
            raise ArgumentError.here(f"{name}: proj_size goes with LSTM only")

    @property
    def _directions(self) -> int:
        return 1 + self.bidirectional

    @property
    def _output(self) -> int:
        return self.proj_size or self.hidden_size

    def _make_layer(self, depth: int, reverse: bool, options: dict[str, Any]) -> None:
        rows = _GATES[self.mode] * self.hidden_size
        width = self.input_size if depth == 0 else self._output * self._directions
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, width), "weight_hh": (rows, self._output),
        }  # fmt: skip
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        suffix = f"_l{depth}{'_reverse' if reverse else ''}"
        for name, shape in shapes.items():
            self.register_parameter(name + suffix, Parameter(empty(shape, **options)))
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        self._names.append([name + suffix if name in shapes else "" for name in kinds])

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names if name] for names in self._names]

    @property
    def _flat_weights_names(self) -> list[str]:
        """The names of the weights of all layers."""
        return [name for names in self._names for name in names if name]

    @property
    def _flat_weights(self) -> list[Any]:
        """The weights of all layers; pruning and the like may compute them from others."""
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Does nothing, for compatibility with PyTorch: weights have no flattened copy."""

    def _weights(self, number: int) -> list[Any]:
        return [getattr(self, name) if name else None for name in self._names[number]]

    def _direction(
        self, x: Any, number: int, states: list[Any], reverse: bool, batch_first: bool
    ) -> tuple[Any, ...]:
        """The outputs of one direction of one layer, and its last states."""
        raise NotImplementedError

    def _run(self, input: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        """The last layer's outputs, and all layers' last states; N as in the input.

        Args:
            states: of each kind, (layers * directions, N, width), or `None`.
        """
        if isinstance(input, PackedSequence):
            return self._run_packed(input, states)
        shape = dims_of(input)
        if len(shape) not in (2, 3) or shape[-1] != self.input_size:
            order = "(N, L, " if self.batch_first else "(L, N, "
            raise ShapeError.here(
                f"{type(self).__name__}: expected an input {order}{self.input_size}) or (L, "
                f"{self.input_size}), got {show(shape)}"
            )
        single, axis = len(shape) == 2, 0 if self.batch_first else 1
        if not shape[0 if single else 1 - axis]:
            raise ShapeError.here(
                f"{type(self).__name__}: expected a sequence length of 1 or more, got an input of "
                f"shape {show(shape)}"
            )
        x = nodes.widened(input, axis=axis) if single else input
        if single:
            states = [None if s is None else nodes.widened(s, axis=1) for s in states]
        self._check_states(states, dims_of(x)[axis])
        count = self.num_layers * self._directions
        parts = [(None,) * count if s is None else several(nodes.unstacked(s)) for s in states]
        y, last = self._layers(x, parts)
        states_after = [nodes.stacked(*each) for each in zip(*last, strict=True)]
        if single:
            return nodes.narrowed(y, axis=axis), [nodes.narrowed(s, axis=1) for s in states_after]
        return y, states_after

    def _run_packed(self, packed: PackedSequence, states: list[Any]) -> tuple[Any, list[Any]]:
        """Like `_run`, for sequences of different lengths."""
        if dims_of(packed.data)[1:] != (self.input_size,):
            raise ShapeError.here(
                f"{type(self).__name__}: expected packed entries (N, {self.input_size}), got "
                f"{show(dims_of(packed.data))}"
            )
        order, back = packed.sorted_indices, packed.unsorted_indices
        sizes: list[int] = packed.batch_sizes.tolist()
        self._check_states(states, sizes[0])
        if order is not None:
            states = [None if s is None else index_select(s, 1, order) for s in states]
        count = self.num_layers * self._directions
        parts = [(None,) * count if s is None else several(nodes.unstacked(s)) for s in states]
        y, last = self._layers(packed.data, parts, sizes)
        states_after = [nodes.stacked(*each) for each in zip(*last, strict=True)]
        if back is not None:
            states_after = [index_select(s, 1, back) for s in states_after]
        return packed._replace(data=y), states_after

    def _packed_direction(
        self, x: Any, number: int, states: list[Any], reverse: bool, sizes: list[int]
    ) -> tuple[Any, ...]:
        def direction(x: Any, states: list[Any]) -> tuple[Any, ...]:
            return self._direction(x, number, states, reverse, False)

        return (run_backwards if reverse else run_forwards)(x, sizes, states, direction)

    def _check_states(self, states: list[Any], n: int) -> None:
        widths = (self._output, self.hidden_size)
        for state, width in zip(states, widths, strict=False):
            expected = (self.num_layers * self._directions, n, width)
            if state is not None and dims_of(state) != expected:
                raise ShapeError.here(
                    f"{type(self).__name__}: expected a state of shape {show(expected)}, got "
                    f"{show(dims_of(state))}"
                )

    def _layers(
        self, x: Any, parts: list[Any], sizes: list[int] | None = None
    ) -> tuple[Any, list[tuple[Any, ...]]]:
        last: list[tuple[Any, ...]] = []
        for depth in range(self.num_layers):
            outputs: list[Any] = []
            for reverse in range(self._directions):
                number = depth * self._directions + reverse
                own = [part[number] for part in parts]
                if sizes is None:
                    y, *final = self._direction(x, number, own, bool(reverse), self.batch_first)
                else:
                    y, *final = self._packed_direction(x, number, own, bool(reverse), sizes)
                outputs.append(y)
                last.append(tuple(final))
            x = outputs[0] if len(outputs) == 1 else nodes.joined(*outputs)
            if self.dropout and depth < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        return x, last


class RNN(RNNBase):
    """`h = tanh(W x + b + V h + c)`, step by step.

    Args:
        nonlinearity: `tanh` or `relu`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        mode = f"RNN_{nonlinearity.upper()}"
        if mode not in ("RNN_TANH", "RNN_RELU"):
            raise ArgumentError.here(
                f"RNN: expected nonlinearity 'tanh' or 'relu', got {nonlinearity!r}"
            )
        super().__init__(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity

    def _direction(
        self, x: Any, number: int, states: list[Any], reverse: bool, batch_first: bool
    ) -> tuple[Any, ...]:
        relu = self.mode == "RNN_RELU"
        weights = self._weights(number)[:4]
        return nodes.rnn(x, *states, *weights, reverse=reverse, batch_first=batch_first, relu=relu)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs (L, N, directions * hidden_size), and the last states of each layer.

        For a `PackedSequence`, the outputs are one too.
        """
        y, (h,) = self._run(input, [hx])
        return y, h


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, device, dtype,
        )  # fmt: skip

    def _direction(
        self, x: Any, number: int, states: list[Any], reverse: bool, batch_first: bool
    ) -> tuple[Any, ...]:
        weights = self._weights(number)[:4]
        return nodes.gru(x, *states, *weights, reverse=reverse, batch_first=batch_first)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs (L, N, directions * hidden_size), and the last states of each layer.

        For a `PackedSequence`, the outputs are one too.
        """
        y, (h,) = self._run(input, [hx])
        return y, h


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997).

    Args:
        proj_size: width of the states h, if smaller than `hidden_size`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip

    def _direction(
        self, x: Any, number: int, states: list[Any], reverse: bool, batch_first: bool
    ) -> tuple[Any, ...]:
        weights = self._weights(number)
        return nodes.lstm(x, *states, *weights, reverse=reverse, batch_first=batch_first)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Outputs (L, N, directions * width), and the last states h and c of each layer.

        For a `PackedSequence`, the outputs are one too.
        """
        y, (h, c) = self._run(input, [None, None] if hx is None else list(hx))
        return y, (h, c)
