"""AttentionWrapper: a cell whose input includes the previous step's attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.errors import ArgumentError, ShapeError
from weft.tf1.contrib.seq2seq.attention import AttentionMechanism
from weft.tf1.control.dependency import identity
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.creation import zeros
from weft.tf1.elementwise.arithmetic import matmul
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail
from weft.tf1.framework.structure import flatten, map_structure
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.layers.dense import Dense
from weft.tf1.nn.rnn_cell import RNNCell
from weft.tf1.shaping.arrangement import concat, expand_dims, squeeze

__all__ = ["AttentionWrapper", "AttentionWrapperState"]

TILE = (
    "the batch of the memory (the encoder's outputs) and of {what} differ, got {first} and"
    " {second}; for a BeamSearchDecoder both go through tf.contrib.seq2seq.tile_batch"
)


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`.

    Attributes:
        cell_state: the state of the cell.
        attention: the attention output of the previous step.
        time: the number of steps, int32.
        alignments: the previous step's weights: [batch, memory steps], or one per mechanism.
        alignment_history: the weights of all steps as a `TensorArray`, if requested.
        attention_state: the state of the mechanism, or one per mechanism.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **changes: Any) -> AttentionWrapperState:
        """The state with other parts, such as an encoder's as `cell_state=`.

        Raises:
            ShapeError: a part has another shape.
        """
        new = self._replace(**changes)
        for name in changes:
            map_structure(_same_shape, getattr(self, name), getattr(new, name))
        return new


def _same_shape(old: Any, new: Any) -> Any:
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        if not old.shape.is_compatible_with(new.shape):
            raise fail(ShapeError, f"clone: expected shape {old.shape}, got {new}")
        new.set_shape(old.shape)
    return new


class AttentionWrapper(RNNCell):
    """A cell with attention: the previous attention output is concatenated to its inputs.

    Args:
        cell: the cell.
        attention_mechanism: one, or a list of several, whose outputs are concatenated.
        attention_layer_size: the width of a layer over the cell's output and the context (a list
            for several); with `None`, the context is the attention output.
        alignment_history: store the weights of all steps in the state.
        cell_input_fn: from inputs and the previous attention to the cell's inputs; concatenation by
            default.
        output_attention: whether to output the attention (as Luong's does), or the cell's output.
        initial_cell_state: used by `zero_state` instead of zeros.
        attention_layer: layers instead of `attention_layer_size`.
        attention_fn: used instead of `compute_attention`.

    Raises:
        ArgumentError: a mechanism has the wrong type, or their number differs from the layers'.
        ShapeError: batch sizes differ.
    """

    def __init__(
        self, cell: Any, attention_mechanism: Any, attention_layer_size: Any = None,
        alignment_history: bool = False, cell_input_fn: Callable[..., Any] | None = None,
        output_attention: bool = True, initial_cell_state: Any = None, name: str | None = None,
        attention_layer: Any = None, attention_fn: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name)
        self._several = isinstance(attention_mechanism, list | tuple)
        self._mechanisms: list[Any] = (
            list(attention_mechanism) if self._several else [attention_mechanism]
        )
        for found in self._mechanisms:
            if not isinstance(found, AttentionMechanism):
                raise fail(
                    ArgumentError, f"AttentionWrapper: expected an AttentionMechanism: {found!r}"
                )
        self._cell = cell
        self._inputs = cell_input_fn or (lambda inputs, attention: concat([inputs, attention], -1))
        self._outputs_attention, self._keeps = output_attention, alignment_history
        self._attend = attention_fn or compute_attention
        self._layers = self._made_layers(attention_layer_size, attention_layer)
        self._initial = initial_cell_state
        if initial_cell_state is not None:
            self._check(flatten(initial_cell_state)[-1], "initial_cell_state")

    def _made_layers(self, sizes: Any, layers: Any) -> list[Any]:
        if sizes is not None and layers is not None:
            raise fail(
                ArgumentError,
                "AttentionWrapper: expected attention_layer_size or attention_layer, not both",
            )
        given = layers if sizes is None else sizes
        if given is None:
            return [None] * len(self._mechanisms)
        found = list(given) if isinstance(given, list | tuple) else [given]
        if len(found) != len(self._mechanisms):
            raise fail(
                ArgumentError,
                f"AttentionWrapper: expected {len(self._mechanisms)} attention layers, one a"
                f" mechanism, got {len(found)}",
            )
        if sizes is None:
            return found
        kinds = [m.dtype for m in self._mechanisms]
        return [
            Dense(n, name="attention_layer", use_bias=False, dtype=kind)
            for n, kind in zip(found, kinds, strict=True)
        ]

    def _check(self, x: Tensor, what: str) -> None:
        given = x.shape.as_list()[0] if x.shape.ndims else None
        for mechanism in self._mechanisms:
            known = mechanism.values.shape.as_list()[0]
            if None not in (known, given) and known != given:
                text = TILE.format(what=what, first=known, second=given)
                raise fail(ShapeError, f"AttentionWrapper: {text}")

    def _item_or_tuple(self, items: Sequence[Any]) -> Any:
        return tuple(items) if self._several else items[0]

    @property
    def _attention_size(self) -> int:
        sizes: list[int] = []
        for layer, mechanism in zip(self._layers, self._mechanisms, strict=True):
            depth = mechanism.values.shape.as_list()[-1]
            if layer is not None:
                shape = [None, self._cell.output_size + depth]
                depth = layer.compute_output_shape(shape).as_list()[-1]
            sizes.append(depth)
        return sum(sizes)

    @property
    def output_size(self) -> Any:
        """The size of the attention, or of the cell's output."""
        return self._attention_size if self._outputs_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """Sizes of all parts of the state."""
        sizes = [m.alignments_size for m in self._mechanisms]
        return AttentionWrapperState(
            self._cell.state_size, self._attention_size, TensorShape([]),
            self._item_or_tuple(sizes),
            self._item_or_tuple([n if self._keeps else () for n in sizes]),
            self._item_or_tuple([m.state_size for m in self._mechanisms]),
        )  # fmt: skip

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The initial state."""
        state = self._initial
        if state is None:
            state = self._cell.zero_state(batch_size, dtype)
        first = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
        states = [m.initial_state(batch_size, dtype) for m in self._mechanisms]
        arrays = [TensorArray(dtype, 0, True, element_shape=a.shape) for a in first]
        return AttentionWrapperState(
            map_structure(identity, state), zeros([batch_size, self._attention_size], dtype),
            zeros([], int32), self._item_or_tuple(first),
            self._item_or_tuple(arrays if self._keeps else [()] * len(arrays)),
            self._item_or_tuple(states),
        )  # fmt: skip

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        """One step."""
        if not isinstance(state, AttentionWrapperState):
            raise fail(
                ArgumentError, f"AttentionWrapper: expected an AttentionWrapperState, got {state!r}"
            )
        output, after = self._cell(self._inputs(inputs, state.attention), state.cell_state)
        self._check(output, "the cell's output")
        before = state.attention_state if self._several else [state.attention_state]
        found = [
            self._attend(mechanism, output, own, layer)
            for mechanism, own, layer in zip(self._mechanisms, before, self._layers, strict=True)
        ]
        attentions, alignments, states = zip(*found, strict=True)
        attention = attentions[0] if len(found) == 1 else concat(list(attentions), 1)
        kept = state.alignment_history if self._several else [state.alignment_history]
        if self._keeps:
            pairs = zip(kept, alignments, strict=True)
            kept = [array.write(state.time, weights) for array, weights in pairs]
        new = AttentionWrapperState(
            after, attention, state.time + 1, self._item_or_tuple(alignments),
            self._item_or_tuple(kept), self._item_or_tuple(states),
        )  # fmt: skip
        return (attention if self._outputs_attention else output), new


def compute_attention(mechanism: Any, output: Any, state: Any, layer: Any) -> tuple[Any, Any, Any]:
    """The attention for a query, the weights of the memory's steps, the mechanism's next state."""
    alignments, state = mechanism(output, state)
    context = squeeze(matmul(expand_dims(alignments, 1), mechanism.values), [1])
    if layer is not None:
        context = layer(concat([output, context], 1))
    return context, alignments, state
