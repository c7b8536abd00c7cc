"""`RNN` and the layers that run a cell over all steps: SimpleRNN, GRU, LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

import weft.tf1 as tf
from weft.documentation import Reads
from weft.errors import ArgumentError, ShapeError, StateError
from weft.tf1.control.slice_loop import over_slices
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest, sessions
from weft.tf1.keras.engine.graph_state import graph_state
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import OPTIONS, Layer
from weft.tf1.keras.layers.cells import Cell, GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells
from weft.tf1.keras.storage.network_config import layer_from
from weft.tf1.keras.storage.serialization import constructor_arguments

__all__ = ["GRU", "LSTM", "RNN", "SimpleRNN"]


class RNN(Layer):
    """Runs a cell over the steps of sequences (batch, steps, features).

    Args:
        cell: one, or a list of stacked cells.
        return_sequences: whether to return the outputs of all steps, not only the last one.
        return_state: whether to also return the last states.
        go_backwards: whether to run from the last step to the first.
        stateful: whether a batch starts from the previous batch's states; needs a batch size.
        unroll: accepted; the steps are always one loop in the program.
        time_major: whether steps come before the batch axis.
    """

    def __init__(
        self, cell: Any, return_sequences: bool = False, return_state: bool = False,
        go_backwards: bool = False, stateful: bool = False, unroll: bool = False,
        time_major: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        many = isinstance(cell, list | tuple)
        self.cell: Any = StackedRNNCells(cell) if many else layer_from(cell)
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.unroll, self.time_major = go_backwards, unroll, time_major
        self.stateful = stateful
        self.supports_masking = True
        self.input_spec = InputSpec(min_ndim=3)
        self.states: list[Any] = []
        if not hasattr(self.cell, "state_size"):
            raise fail(ArgumentError, f"RNN: expected a cell with a state_size, got {cell!r}")

    @property
    def _sizes(self) -> list[Any]:
        return nest.flatten(self.cell.state_size)

    def build(self, input_shape: Any) -> None:
        """Create the cell's weights, and the states of a stateful layer."""
        first = input_shape[0] if isinstance(input_shape, list) else input_shape
        dims = first.as_list()
        self.cell.dtype = self.cell.dtype or self.dtype
        if not self.cell.built:
            self.cell.build(tf.TensorShape([dims[0], *dims[2:]]))
            self.cell.built = True
        if self.stateful:
            rows = dims[1 if self.time_major else 0]
            if rows is None:
                raise fail(
                    ShapeError,
                    f"{self.name}: expected a batch size, as it is stateful; give the first layer "
                    "batch_input_shape, or Input batch_shape",
                )
            self.states = [self._held(f"state_{i}", [rows, n]) for i, n in enumerate(self._sizes)]
        self.built = True

    def _held(self, name: str, shape: Sequence[int]) -> Any:
        """A variable for a state, which is not a weight."""
        dtype = self.dtype or "float32"
        state = tf.Variable(
            lambda: tf.zeros(shape, dtype), trainable=False, name=name, dtype=dtype,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip
        graph_state().variables.append(state)
        self._seen_weights.add(id(state))  # not to be tracked
        return state

    def __call__(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        """The outputs; see `call`."""
        given = {} if initial_state is None else {"initial_state": initial_state}
        return super().__call__(inputs, **given, **kwargs)

    def call(
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        """The outputs, and the last states if requested."""
        if isinstance(inputs, list | tuple):
            inputs, *initial_state = inputs
            mask = nest.flatten(mask)[0] if nest.flatten(mask) else None
        steps = inputs if self.time_major else _turned(inputs)
        first = self._first_states(steps, initial_state)
        if hasattr(self.cell, "prepare"):
            self.cell.prepare(steps[0], first[0], training)
        flags = None if mask is None else tf.cast(
            mask if self.time_major else tf.transpose(mask, [1, 0]), tf.bool
        )  # fmt: skip
        if self.go_backwards:
            steps = tf.reverse(steps, [0])
            flags = None if flags is None else tf.reverse(flags, [0])
        last, sequence, states = self._run(steps, flags, first, self._options(training))
        if self.stateful:
            pairs = zip(self.states, states, strict=True)
            self.add_update([held.assign(new).op for held, new in pairs])
        y = last if sequence is None else sequence if self.time_major else _turned(sequence)
        return [y, *states] if self.return_state else y

    def _options(self, training: Any) -> dict[str, Any]:
        known = getattr(self.cell, "_call_arguments", ())
        return {"training": training} if "training" in known else {}

    def _first_states(self, steps: Any, initial_state: Any) -> list[Any]:
        states = nest.flatten(initial_state)
        if states:
            if len(states) != len(self._sizes):
                raise fail(
                    ArgumentError,
                    f"{self.name}: expected {len(self._sizes)} states as initial_state, got "
                    f"{len(states)}",
                )
            return [tf.convert_to_tensor(s) for s in states]
        if self.stateful:
            return [s.value() for s in self.states]
        known = steps.shape.as_list()[1]
        rows = tf.shape(steps)[1] if known is None else known
        sizes = [list(n) if isinstance(n, list | tuple) else [n] for n in self._sizes]
        return [tf.zeros([rows, *n], steps.dtype.base_dtype) for n in sizes]

    def _run(
        self, steps: Any, flags: Any, first: list[Any], options: dict[str, Any]
    ) -> tuple[Any, Any, list[Any]]:
        """The last output, the outputs of all steps or `None`, and the last states."""
        count = len(first)
        rows, dtype = tf.shape(first[0])[0], first[0].dtype.base_dtype
        known = first[0].shape.as_list()[0]
        size = getattr(self.cell, "output_size", None) or self._sizes[0]
        zeros = tf.zeros([rows if known is None else known, size], dtype)
        if not isinstance(self.cell, Cell | StackedRNNCells):  # its outputs may be of any type
            zeros = tf.zeros_like(self.cell.call(steps[0], first, **options)[0])

        def step(held: list[Any], now: list[Any]) -> tuple[list[Any], list[Any]]:
            y, new = self.cell.call(now[0], held[:count], **options)
            new = nest.flatten(new)
            if flags is not None:
                y = _where(now[1], y, held[count])
                new = [_where(now[1], a, b) for a, b in zip(new, held, strict=False)]
            return [*new, y], [y] if self.return_sequences else []

        xs = [steps] if flags is None else [steps, flags]
        held, ys = over_slices(step, [*first, zeros], xs, pure=_only_computes(self.cell))
        return held[count], ys[0] if ys else None, held[:count]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The inputs' mask, if the outputs have steps."""
        masks = nest.flatten(mask)
        own = masks[0] if masks and self.return_sequences else None
        return [own, *[None] * len(self._sizes)] if self.return_state else own

    def reset_states(self, states: Any = None) -> None:
        """Reset the states to zeros, or to the given ones.

        Raises:
            StateError: the layer is not stateful.
        """
        if not self.stateful or not self.states:
            raise fail(
                StateError, f"{self.name}.reset_states: expected a stateful layer that is built"
            )
        leaves = nest.flatten(states)
        arrays = leaves or [np.zeros(s.shape.as_list()) for s in self.states]
        with self._graph_of_name.as_default():
            sessions.assign_values(list(zip(self.states, arrays, strict=True)))

    def checkpoint_weights(self) -> dict[str, Any]:
        """The weights by their names in weight files."""
        return {f"cell/{n}": v for n, v in super().checkpoint_weights().items()}


def _only_computes(cell: Any) -> bool:
    """Whether a cell neither creates variables in a step nor reads values: if it is Weft's."""
    parts = cell.cells if type(cell) is StackedRNNCells else [cell]
    return all([type(part).__module__ == SimpleRNNCell.__module__ for part in parts])


def _turned(x: Any) -> Any:
    """Swaps the batch and step axes."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.ndims)])


def _where(flags: Any, x: Any, y: Any) -> Any:
    for _ in range(x.shape.ndims - 1):
        flags = tf.expand_dims(flags, -1)
    return tf.where(flags, x, y)


_LAYER_OPTIONS: Final = frozenset({*constructor_arguments(RNN), *OPTIONS} - {"cell"})


class _OfCell(RNN):
    """A layer that takes its cell's arguments."""

    cell_class: ClassVar[Callable[..., Any]]
    _unconfigured = ("cell",)

    def __init__(self, units: int, *args: Any, **options: Any) -> None:
        own = {n: options.pop(n) for n in [*options] if n in _LAYER_OPTIONS}
        super().__init__(type(self).cell_class(units, *args, **options), **own)

    units = Reads[int]("cell.units", "Units of the state.")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        cell = self.cell.get_config()
        return super().get_config() | {k: v for k, v in cell.items() if k not in _LAYER_OPTIONS}


class SimpleRNN(_OfCell):
    """`SimpleRNNCell` over all steps; arguments are the cell's and those of `RNN`."""

    cell_class = SimpleRNNCell


class GRU(_OfCell):
    """`GRUCell` over all steps; arguments are the cell's and those of `RNN`."""

    cell_class = GRUCell


class LSTM(_OfCell):
    """`LSTMCell` over all steps; arguments are the cell's and those of `RNN`."""

    cell_class = LSTMCell
