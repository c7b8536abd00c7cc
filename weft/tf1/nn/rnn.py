"""dynamic_rnn, static_rnn and their bidirectional variants; reverse_sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.ops.sequence import reversal
from weft.tf1.control.slice_loop import over_slices
from weft.tf1.creation import range as range_
from weft.tf1.creation import zeros_like
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.structure import flatten, pack
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import where
from weft.tf1.reduction import reduce_any
from weft.tf1.shaping.arrangement import concat, expand_dims, shape, stack, tile, transpose
from weft.tf1.variable.variable_scope import variable_scope

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn", "static_bidirectional_rnn", "static_rnn"]


def dynamic_rnn(
    cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None,
    dtype: Any = None, parallel_iterations: int | None = None, swap_memory: bool = False,
    time_major: bool = False, scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The outputs of a cell for all steps of sequences, and its last state.

    Args:
        inputs: nested tensors (batch, steps, ...), or (steps, batch, ...) if `time_major`.
        sequence_length: (batch): after it, outputs are 0 and the state is kept, but for a scalar
            in it, which has no example.
        initial_state: zeros of `dtype` by default.
        parallel_iterations, swap_memory: accepted.

    Raises:
        ArgumentError: neither `initial_state` nor `dtype` is given.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default():
    ...     xs = tf.placeholder(tf.float32, [None, None, 3])
    ...     ys, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), xs, dtype=tf.float32)
    ...     print(state.shape)
    (?, 4)
    """
    del parallel_iterations, swap_memory
    with variable_scope(scope or "rnn"):
        leaves = [convert_to_tensor(x) for x in flatten(inputs)]
        steps = leaves if time_major else [_turned(x) for x in leaves]
        first = shape(steps[0])
        state = _first_state(cell, initial_state, steps[0], first[1], dtype)
        held = [convert_to_tensor(x) for x in flatten(state)]
        lengths = None if sequence_length is None else cast(sequence_length, int32)
        outline: list[Any] = []

        def step(now: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            output, new = cell(pack(inputs, rows[1:]), pack(state, now))
            outline.append(output)
            ys, after = flatten(output), flatten(new)
            if lengths is not None:
                alive = rows[0] < lengths
                ys = [where(alive, y, zeros_like(y)) for y in ys]
                pairs = zip(after, now, strict=True)
                after = [a if a.shape.ndims == 0 else where(alive, a, b) for a, b in pairs]
            return after, ys

        last, stacks = over_slices(step, held, [range_(first[0]), *steps])
        ys = stacks if time_major else [_turned(y) for y in stacks]
        return pack(outline[0], ys), pack(state, last)


def _turned(x: Tensor) -> Tensor:
    """Batch and step axes swapped."""
    rank = x.shape.ndims
    if rank is None or rank < 2:
        raise fail(ArgumentError, f"expected inputs of rank 2 or more, got {x}")
    return transpose(x, [1, 0, *range(2, rank)])


def _first_state(cell: Any, given: Any, x: Tensor, batch: Tensor, dtype: Any) -> Any:
    if given is not None:
        return given
    if dtype is None:
        raise fail(ArgumentError, "expected an initial_state, or a dtype for one of zeros")
    known = x.shape.as_list()[1]
    return cell.zero_state(batch if known is None else known, dtype)


def static_rnn(
    cell: Any, inputs: Sequence[Any], initial_state: Any = None, dtype: Any = None,
    sequence_length: Any = None, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """An unrolled loop: a cell's outputs for a list of inputs (batch, ...), and its last state.

    Raises:
        ArgumentError: there are no inputs, or neither `initial_state` nor `dtype` is given.
    """
    if not inputs:
        raise fail(ArgumentError, "static_rnn: expected at least one input")
    with variable_scope(scope or "rnn") as own:
        first = convert_to_tensor(flatten(inputs[0])[0])
        known = first.shape.as_list()[0]
        state = initial_state
        if state is None:
            if dtype is None:
                raise fail(ArgumentError, "expected an initial_state, or a dtype for one of zeros")
            state = cell.zero_state(shape(first)[0] if known is None else known, dtype)
        lengths = None if sequence_length is None else cast(sequence_length, int32)
        outputs: list[Any] = []
        for t, x in enumerate(inputs):
            if t:
                own.reuse_variables()
            output, new = cell(x, state)
            if lengths is not None:
                alive = lengths > t
                output = pack(output, [where(alive, y, zeros_like(y)) for y in flatten(output)])
                pairs = zip(flatten(new), flatten(state), strict=True)
                new = pack(new, [_kept(alive, a, b) for a, b in pairs])
            outputs.append(output)
            state = new
        return outputs, state


def _kept(alive: Tensor, new: Any, old: Any) -> Any:
    """A state after a step; one that all examples share changes while any of them runs."""
    shared = convert_to_tensor(new).shape.ndims == 0
    return where(reduce_any(alive) if shared else alive, new, old)


def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None,
    initial_state_fw: Any = None, initial_state_bw: Any = None, dtype: Any = None,
    parallel_iterations: int | None = None, swap_memory: bool = False, time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:  # fmt: skip
    """`dynamic_rnn` of one cell forwards and of another one backwards.

    Returns:
        The outputs of both, and their last states.
    """
    del parallel_iterations, swap_memory
    axis = 0 if time_major else 1

    def reversed_(x: Any) -> Any:
        tensor = convert_to_tensor(x)
        lengths = sequence_length
        if lengths is None:
            dims = shape(tensor)
            lengths = tile(expand_dims(dims[axis], 0), [dims[1 - axis]])
        return reverse_sequence(tensor, lengths, seq_axis=axis, batch_axis=1 - axis)

    with variable_scope(scope or "bidirectional_rnn"):
        forward, last = dynamic_rnn(
            cell_fw, inputs, sequence_length, initial_state_fw, dtype,
            time_major=time_major, scope="fw",
        )  # fmt: skip
        turned = pack(inputs, [reversed_(x) for x in flatten(inputs)])
        backward, first = dynamic_rnn(
            cell_bw, turned, sequence_length, initial_state_bw, dtype,
            time_major=time_major, scope="bw",
        )  # fmt: skip
        back = pack(backward, [reversed_(y) for y in flatten(backward)])
    return (forward, back), (last, first)


def static_bidirectional_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Sequence[Any], initial_state_fw: Any = None,
    initial_state_bw: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None,
) -> tuple[list[Any], Any, Any]:  # fmt: skip
    """`static_rnn` in both directions; concatenated outputs, and both last states."""

    def reversed_(xs: Sequence[Any]) -> list[Any]:
        if sequence_length is None:
            return list(reversed(xs))
        whole = reverse_sequence(stack(list(xs), 0), sequence_length, seq_axis=0, batch_axis=1)
        return [whole[t] for t in range(len(xs))]

    with variable_scope(scope or "bidirectional_rnn"):
        forward, last = static_rnn(
            cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope="fw"
        )
        backward, first = static_rnn(
            cell_bw, reversed_(inputs), initial_state_bw, dtype, sequence_length, scope="bw"
        )
        pairs = zip(forward, reversed_(backward), strict=True)
        return [concat([a, b], 1) for a, b in pairs], last, first


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: int | None = None, batch_axis: int | None = None,
    name: str | None = None, seq_dim: int | None = None, batch_dim: int | None = None,
) -> Tensor:  # fmt: skip
    """Each sequence reversed up to its length; later steps stay.

    Args:
        seq_lengths: one per example.
        seq_axis, batch_axis: of steps and examples; `seq_dim`, `batch_dim` are deprecated names.

    Raises:
        ArgumentError: there is no axis of steps.
    """
    steps = seq_dim if seq_axis is None else seq_axis
    batch = (batch_dim or 0) if batch_axis is None else batch_axis
    if steps is None or steps == batch:
        raise fail(ArgumentError, f"reverse_sequence: expected a seq_axis, got {steps}")
    with name_scope(name, "ReverseSequence", [input, seq_lengths]):
        x = convert_to_tensor(input)
        rank = x.shape.ndims
        if rank is None:
            raise fail(ArgumentError, f"reverse_sequence: expected a known rank, got {x}")
        turned = get_default_graph().emit(
            "ReverseSequence", [x, cast(seq_lengths, int32)], reversal.reverse_sequence,
            steps=steps % rank, batch=batch % rank, name="ReverseSequence",
        )  # fmt: skip
        back = turned.outputs[0]
        back.set_shape(x.shape)
        return back
