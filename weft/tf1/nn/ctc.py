"""Connectionist temporal classification: its loss, and decoders of what a network gives.

They are computed by NumPy, in a call of Python inside the step, for lengths of any size.

Source: Graves et al., "Connectionist Temporal Classification" (2006); Graves and Jaitly, "Towards
End-to-End Speech Recognition with Recurrent Neural Networks" (2014), for the search.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.control.py_func import host_function
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import fail
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.nn.beam_search import best_paths, log_softmax
from weft.tf1.shape.arrangement import squeeze, transpose

Array = np.ndarray[Any, Any]
NEVER: Final = -1e30  # the logarithm of the probability of what cannot be


def ctc_loss(
    labels: SparseTensor,
    inputs: Any,
    sequence_length: Any,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
) -> Tensor:
    """Negative logarithm of the probability of labels, in order, at unknown times: [batch].

    Args:
        labels: int32, a row an example.
        inputs: logits [time, batch, classes]; the last class stands for no label.
        sequence_length: how many of the steps count, [batch].
        preprocess_collapse_repeated: labels that repeat count once.
        ctc_merge_repeated: must be true: outputs that repeat are one label.
        ignore_longer_outputs_than_inputs: a sequence too short for its labels counts as 0 instead
            of being an error.
        time_major: whether time comes first in `inputs`, or the batch.

    Raises:
        ArgumentError: labels that are not sparse, or outputs that repeat are to be several labels.
        UnknownError: when it runs, where lengths or labels do not fit.
    """
    if not isinstance(labels, SparseTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise fail(ArgumentError, f"ctc_loss: expected labels to be a SparseTensor, got {labels!r}")
    if not ctc_merge_repeated:
        raise fail(ArgumentError, "ctc_loss: expected ctc_merge_repeated=True")
    logits = convert_to_tensor(inputs, name="inputs")
    logits = logits if time_major else transpose(logits, [1, 0, 2])
    count = convert_to_tensor(sequence_length, name="sequence_length", dtype=dtypes.int32)
    run = functools.partial(
        _loss, collapse=preprocess_collapse_repeated, ignore=ignore_longer_outputs_than_inputs
    )
    given = [logits, labels.indices, labels.values, count]
    kind = logits.dtype.base_dtype
    shapes = [(1, (0, 1), 1), ((0, 0), (0, 1), (0, 2))]  # of one rank, so that they can be computed
    op = host_function("CTCLoss", run, given, [kind, kind], shapes, None, _gradient)
    return squeeze(op.outputs[0], [0, 2])


def _gradient(g: Any, y: Any, *inputs: Any) -> list[Any]:
    """The second output is the gradient by the logits."""
    return [y[1] * g[0], None, None, None]


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the likeliest class at each step.

    Args:
        inputs: logits [time, batch, classes]; the last class stands for no label.
        sequence_length: how many of the steps count, [batch].
        merge_repeated: whether outputs that repeat are one label.

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
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The likeliest labels that a search finds which keeps `beam_width` beginnings.

    Args:
        inputs: logits [time, batch, classes]; the last class stands for no label.
        sequence_length: how many of the steps count, [batch].
        beam_width: how many beginnings are kept.
        top_paths: how many results, the likeliest first.
        merge_repeated: whether labels that repeat in a result are shown once.

    Returns:
        A list of `top_paths` sets of labels, and the logarithms of their probabilities,
        [batch, top_paths].

    Raises:
        ArgumentError: more results than beginnings are asked for.
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
    """`ctc_beam_search_decoder` that shows labels that repeat."""
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
    logs = log_softmax(logits.astype(np.float64))
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
    """Rows of different lengths as positions, values and shape."""
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


# -- the loss on arrays


def _loss(
    logits: Array, indices: Array, values: Array, counts: Array, collapse: bool, ignore: bool
) -> list[Array]:
    """The losses, and their gradient by the logits."""
    _check_counts(logits, counts)
    steps, batch, classes = logits.shape
    if values.size and not 0 <= values.min() <= values.max() < classes - 1:
        raise ValueError(f"expected labels from 0 to {classes - 2}, got {values.tolist()}")
    rows = [values[indices[:, 0] == number] for number in range(batch)]
    rows = [_without_repeats(row) for row in rows] if collapse else rows
    needed = np.array([len(r) + int((r[1:] == r[:-1]).sum()) for r in rows], np.int64)
    possible = needed <= counts
    if not ignore and not possible.all():
        wrong = int(np.flatnonzero(~possible)[0])
        raise ValueError(
            f"expected at least {needed[wrong]} steps for the labels of example {wrong}, got "
            f"{counts[wrong]} (or ignore_longer_outputs_than_inputs=True)"
        )
    sizes = np.array([len(row) for row in rows], np.int64)
    places = np.full((batch, 2 * int(sizes.max(initial=0)) + 1), classes - 1)
    for number, row in enumerate(rows):
        places[number, 1 : 2 * len(row) : 2] = row
    logs = log_softmax(logits.astype(np.float64))
    alive = possible & (counts > 0)
    total, expected = _posterior(logs, places, sizes, counts)
    inside = (np.arange(steps)[:, None] < counts) & alive
    gradient = np.where(inside[..., None], np.exp(logs) - expected, 0)
    losses = np.where(alive, -total, 0.0)
    return [losses[None, :, None].astype(logits.dtype), gradient.astype(logits.dtype)]


def _posterior(logs: Array, places: Array, sizes: Array, counts: Array) -> tuple[Array, Array]:
    """Logarithms of probabilities, and how likely each class is at each step; section 4.1."""
    steps, batch, classes = logs.shape
    width = places.shape[1]
    number = np.arange(batch)[:, None]
    emitted = logs[:, number, places]  # [time, batch, place]
    skips = np.zeros((batch, width), bool)
    skips[:, 2:] = (places[:, 2:] != classes - 1) & (places[:, 2:] != places[:, :-2])
    ends = np.abs(np.arange(width) - (2 * sizes[:, None] - 0.5)) < 1
    forward = np.full((steps + 1, batch, width), NEVER)
    forward[0, :, 0] = 0.0  # before the first step, in front of the first blank
    backward = np.full((steps, batch, width), NEVER)
    for t in range(steps):
        allowed = skips if t else np.zeros_like(skips)
        forward[t + 1] = _moved(forward[t], allowed) + emitted[t]
    for t in range(steps - 1, -1, -1):
        if t + 1 < steps:
            later = backward[t + 1] + emitted[t + 1]
            turned = np.zeros_like(skips)
            turned[:, : max(width - 2, 0)] = skips[:, 2:]
            backward[t] = _moved(later[:, ::-1], turned[:, ::-1])[:, ::-1]
        last = (counts == t + 1)[:, None]
        backward[t] = np.where(last, np.where(ends, 0.0, NEVER), backward[t])
    joint = forward[1:] + backward
    total = np.logaddexp.reduce(joint[0], axis=1) if steps else np.zeros(batch)
    chance = np.exp(np.minimum(joint - total[:, None], 0.0))
    expected = np.zeros(logs.shape)
    time = np.arange(steps)[:, None, None]
    np.add.at(expected, (time, number[None], places[None]), chance)
    return total, expected


def _moved(now: Array, skips: Array) -> Array:
    """Logarithms one step on: they stay, go one place on, or two where that is allowed."""
    one = np.full_like(now, NEVER)
    one[:, 1:] = now[:, :-1]
    two = np.full_like(now, NEVER)
    two[:, 2:] = now[:, :-2]
    return np.logaddexp(np.logaddexp(now, one), np.where(skips, two, NEVER))
