"""Connectionist temporal classification: the loss, and decoders.

The loss is part of the program; decoders run in NumPy, as a Python call inside the step, because
the number of labels depends on data.

Source: Graves et al., "Connectionist Temporal Classification" (2006); Graves and Jaitly, "Towards
End-to-End Speech Recognition with Recurrent Neural Networks" (2014), for the search.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft import ops
from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.tf1.control.py_func import host_function
from weft.tf1.creation import range as range_
from weft.tf1.creation import sequence_mask, zeros_like
from weft.tf1.elementwise.arithmetic import cast, equal, logical_and, not_equal
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dynamic_shape import dimension
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.known_ahead import follows_from_feeds
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.order import argsort
from weft.tf1.indexing.slicing import gather, scatter_nd, where
from weft.tf1.nn.activation import log_softmax
from weft.tf1.nn.beam_search import best_paths
from weft.tf1.nn.beam_search import log_softmax as log_softmax_of
from weft.tf1.reduction import reduce_sum
from weft.tf1.shaping.arrangement import concat, shape, stack, transpose

__all__ = [
    "ctc_beam_search_decoder", "ctc_beam_search_decoder_v2", "ctc_greedy_decoder", "ctc_loss",
    "ctc_loss_v2",
]  # fmt: skip

Array = np.ndarray[Any, Any]
IMPOSSIBLE: Final = 707.0
"""The loss of a sequence that is too short for its labels, in TensorFlow 2, which adds this for
each step that is not allowed: a finite number, so that the mean of a batch is one."""


def ctc_loss(
    labels: SparseTensor, inputs: Any, sequence_length: Any,
    preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False, time_major: bool = True,
) -> Tensor:  # fmt: skip
    """The negative log probability of unaligned label sequences: [batch].

    Args:
        labels: int32, one row per example.
        inputs: logits [time, batch, classes]; the last class is the blank.
        sequence_length: the number of valid steps, [batch].
        preprocess_collapse_repeated: merge repeated labels first.
        ctc_merge_repeated: must be true: repeated outputs are one label.
        ignore_longer_outputs_than_inputs: a sequence too short for its labels has loss 0 instead of
            raising.
        time_major: whether `inputs` are [time, batch, ...] or [batch, time, ...].

    Raises:
        ArgumentError: the labels are not sparse, or `ctc_merge_repeated` is false.
        InvalidArgumentError: at execution, if lengths or labels do not fit.
    """
    if not isinstance(labels, SparseTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise fail(ArgumentError, f"ctc_loss: expected labels to be a SparseTensor, got {labels!r}")
    if not ctc_merge_repeated:
        raise fail(ArgumentError, "ctc_loss: expected ctc_merge_repeated=True")
    with name_scope(None, "CTCLoss", [inputs]):
        logits = _time_major(inputs, time_major)
        dims = cast(shape(logits), dtypes.int64)
        rows, lengths = _rows(labels, dims, dims[2] - 1, preprocess_collapse_repeated)
        steps = _steps(sequence_length, dims)
        possible = _possible(rows, lengths, steps)
        if not ignore_longer_outputs_than_inputs:
            text = (
                "expected as many steps as there are labels, and one more between equal ones"
                " (or ignore_longer_outputs_than_inputs=True)"
            )
            steps = _checked(steps, possible, text)
        found = _log_likelihood(log_softmax(logits), rows, steps, lengths)
        return where(logical_and(possible, steps > 0), -found, zeros_like(found))


def ctc_loss_v2(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = True,
    unique: Any = None, blank_index: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The negative log probability of unaligned label sequences, as in TensorFlow 2: [batch].

    Args:
        labels: sparse, or [batch, labels].
        logits: [time, batch, classes].
        label_length: the number of labels in each row, [batch]; for sparse labels, anything.
        logit_length: the number of valid steps, [batch].
        logits_time_major: whether logits are [time, batch, ...] or [batch, time, ...].
        unique: accepted: what `ctc_unique_labels` would give.
        blank_index: the class of the blank, from the end if it is negative; 0 by default.
        name: of the operations.

    Raises:
        ArgumentError: the labels are sparse, and there is no `blank_index`.
        InvalidArgumentError: at execution, if lengths or labels do not fit.
    """
    del unique
    sparse = isinstance(labels, SparseTensor)
    if sparse and blank_index is None:
        raise fail(ArgumentError, "ctc_loss: expected a blank_index with labels that are sparse")
    with name_scope(name, "CTCLoss", [logits]):
        x = _time_major(logits, logits_time_major)
        dims = cast(shape(x), dtypes.int64)
        blank = blank_index or 0
        last = dims[2] if blank < 0 else 0
        steps = _steps(logit_length, dims)
        if sparse:
            rows, lengths = _rows(labels, dims, last + blank, False)
        else:
            lengths = cast(convert_to_tensor(label_length), dtypes.int64)
            given = cast(convert_to_tensor(labels), dtypes.int64)
            rows = where(sequence_mask(lengths, shape(given)[1]), given, zeros_like(given))
        possible = _possible(rows, lengths, steps)
        found = _log_likelihood(log_softmax(x), rows, steps, lengths, blank)
        return where(possible, -found, zeros_like(found) + IMPOSSIBLE)


def _time_major(logits: Any, already: bool) -> Tensor:
    x = convert_to_tensor(logits, name="inputs")
    return x if already else transpose(x, [1, 0, 2])


def _steps(lengths: Any, dims: Tensor) -> Tensor:
    """The numbers of valid steps, which inputs of these dimensions have."""
    steps = cast(convert_to_tensor(lengths, name="sequence_length"), dtypes.int64)
    fits = logical_and(steps >= 0, steps <= dims[0])
    return _checked(steps, fits, "sequence_length: expected lengths up to those of inputs")


def _possible(rows: Tensor, lengths: Tensor, steps: Tensor) -> Tensor:
    """Whether there are steps for the labels, and for blanks between equal ones."""
    repeated = cast(equal(rows[:, 1:], rows[:, :-1]), dtypes.int64)
    pairs = cast(sequence_mask(lengths - 1, shape(repeated)[1]), dtypes.int64)
    return lengths + reduce_sum(repeated * pairs, 1) <= steps


def _rows(labels: SparseTensor, dims: Tensor, blank: Any, collapse: bool) -> tuple[Tensor, Tensor]:
    """Labels [batch, labels] padded with zeros, and their numbers, [batch].

    If the longest row's number of labels is not known before the run, there is room for as many as
    there are steps.

    Args:
        dims: of the logits.
        blank: its class.
    """
    values = cast(labels.values, dtypes.int64)
    fits = logical_and(logical_and(values >= 0, values < dims[2]), not_equal(values, blank))
    values = _checked(values, fits, "expected labels below classes, other than the blank")
    told = follows_from_feeds([labels.dense_shape.used])
    room = stack([dims[1], labels.dense_shape[1] if told else dims[0]])
    rows = scatter_nd(labels.indices, values + 1, room) - 1  # -1 where there is none
    kept = rows > -1
    if collapse:
        before = concat([zeros_like(rows[:, :1]) - 1, rows[:, :-1]], 1)
        kept = logical_and(kept, not_equal(rows, before))
        place = range_(cast(room[1], dtypes.int32))
        order = argsort(where(kept, place + zeros_like(rows, dtypes.int32), place + shape(rows)[1]))
        rows = gather(rows, order, axis=1, batch_dims=1)
    lengths = reduce_sum(cast(kept, dtypes.int64), 1)
    inside = sequence_mask(lengths, shape(rows)[1])
    return where(inside, rows, zeros_like(rows)), lengths


def _checked(x: Tensor, fits: Tensor, text: str) -> Tensor:
    """`x`, if all flags are true; else an error at execution."""

    def build(x: Value, fits: Value) -> Value:
        wrong = ops.sum(ops.cast(ops.logical_not(fits), dtype="int32"), axes=None)
        return ops.check(x, wrong, text=f"ctc_loss: {text}")

    return emit("Assert", [x, fits], build, name="Assert")


def _log_likelihood(
    logs: Tensor, rows: Tensor, steps: Tensor, lengths: Tensor, blank: int = -1
) -> Tensor:
    """The log probabilities of rows; a negative blank counts from the end."""

    def build(logs: Value, *others: Value) -> Value:
        last = dimension(logs, 2) if blank < 0 else 0
        return ops.ctc_log_likelihood(logs, *others, blank=last + blank)

    inputs = [logs, rows, steps, lengths]
    return emit("CTCLoss", inputs, build, name="CTCLoss")


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the most likely class at each step.

    Args:
        inputs: logits [time, batch, classes]; the last class is the blank.
        sequence_length: the number of valid steps, [batch].
        merge_repeated: whether repeated outputs are one label.

    Returns:
        A list with the labels, and the negative sum of their logits, [batch, 1].
    """
    logits = convert_to_tensor(inputs, name="inputs")
    count = convert_to_tensor(sequence_length, name="sequence_length", dtype=dtypes.int32)
    run = functools.partial(_greedy, merge=merge_repeated)
    kinds = [dtypes.int64, dtypes.int64, dtypes.int64, logits.dtype.base_dtype]
    shapes = [None, None, (2,), ((0, 1), 1)]
    op = host_function("CTCGreedyDecoder", run, [logits, count], kinds, shapes)
    return [SparseTensor(*op.outputs[:3])], op.outputs[3]


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:  # fmt: skip
    """The most likely labels found by a beam search.

    Args:
        inputs: logits [time, batch, classes]; the last class is the blank.
        sequence_length: the number of valid steps, [batch].
        beam_width: the number of prefixes kept.
        top_paths: the number of results, the most likely first.
        merge_repeated: whether to merge repeated labels in a result.

    Returns:
        A list of `top_paths` label sequences, and their log probabilities, [batch, top_paths].

    Raises:
        ArgumentError: `top_paths` exceeds `beam_width`.
    """
    if not 0 < top_paths <= beam_width:
        text = f"expected top_paths between 1 and beam_width {beam_width}, got {top_paths}"
        raise fail(ArgumentError, f"ctc_beam_search_decoder: {text}")
    logits = convert_to_tensor(inputs, name="inputs")
    count = convert_to_tensor(sequence_length, name="sequence_length", dtype=dtypes.int32)
    run = functools.partial(_search, width=beam_width, top=top_paths, merge=merge_repeated)
    kinds = [dtypes.int64] * (3 * top_paths) + [logits.dtype.base_dtype]
    shapes: list[Any] = [None, None, (2,)] * top_paths
    shapes.append(((0, 1), top_paths))
    op = host_function("CTCBeamSearchDecoder", run, [logits, count], kinds, shapes)
    parts = op.outputs
    decoded = [SparseTensor(*parts[3 * i : 3 * i + 3]) for i in range(top_paths)]
    return decoded, parts[-1]


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` without merging of repeated labels."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)


# -- decoders on arrays


def _greedy(logits: Array, counts: Array, merge: bool) -> list[Array]:
    _check_counts(logits, counts)
    best, blank = logits.argmax(axis=2), logits.shape[2] - 1
    rows: list[Array] = []
    for number, count in enumerate(counts.tolist()):
        path = best[:count, number]
        kept = path != blank
        if merge:
            kept[1:] &= path[1:] != path[:-1]
        rows.append(path[kept])
    inside = np.arange(len(logits))[:, None] < counts
    total = np.where(inside, logits.max(axis=2), 0).sum(axis=0)
    return [*_sparse(rows), -total[:, None].astype(logits.dtype)]


def _search(logits: Array, counts: Array, width: int, top: int, merge: bool) -> list[Array]:
    _check_counts(logits, counts)
    logs = log_softmax_of(logits.astype(np.float64))
    found = [best_paths(logs[:n, b], width, top) for b, n in enumerate(counts.tolist())]
    parts: list[Array] = []
    for place in range(top):
        rows = [np.array(paths[place], np.int64) for paths, _ in found]
        parts += _sparse([_without_repeats(row) for row in rows] if merge else rows)
    scores = np.array([scores for _, scores in found]).reshape(-1, top)
    return [*parts, scores.astype(logits.dtype)]


def _without_repeats(row: Array) -> Array:
    return row[np.flatnonzero(np.diff(row, prepend=-1))]


def _sparse(rows: Sequence[Array]) -> list[Array]:
    """Rows of different lengths as indices, values and shape."""
    lengths = np.array([len(row) for row in rows], np.int64)
    first = np.repeat(np.arange(len(rows)), lengths)
    second = np.concatenate([*[np.arange(n) for n in lengths], np.empty(0, np.int64)])
    values = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
    shape = np.array([len(rows), lengths.max(initial=0)], np.int64)
    return [np.stack([first, second], axis=1).astype(np.int64), values, shape]


def _check_counts(logits: Array, counts: Array) -> None:
    if counts.shape != logits.shape[1:2] or counts.min(initial=0) < 0:
        raise ValueError(f"expected {logits.shape[1]} lengths, got {counts.tolist()}")
    if counts.max(initial=0) > len(logits):
        raise ValueError(f"expected lengths up to {len(logits)}, got {counts.tolist()}")
