"""`PackedSequence`: sequences of different lengths without padding; layers run over one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from weft.eager.functions.creation.constructor import tensor, zeros
from weft.eager.functions.indexing.gather import index_select
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.handle import Handle
from weft.errors import ShapeError
from weft.ir.dtype import float16 as _half
from weft.ir.dtype import float32 as _float
from weft.ir.dtype import float64 as _double
from weft.ir.dtype import int8 as _char
from weft.ir.dtype import int16 as _short
from weft.ir.dtype import int32 as _int
from weft.ir.dtype import int64 as _long
from weft.ir.dtype import uint8 as _byte
from weft.ir.shape import show

Direction = Callable[[Any, list[Any]], tuple[Any, ...]]


class PackedSequence(NamedTuple):
    """Entries of several sequences by time step, without those that have ended.

    Attributes:
        data: all entries, (sum of the lengths, ...); in each step, longest sequences come first.
        batch_sizes: the number of sequences still running at each time step, int64.
        sorted_indices: the original index of each sorted sequence; `None` if unchanged.
        unsorted_indices: the sorted position of each original sequence.
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With `data` converted, as in `Tensor.to`; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def float(self) -> PackedSequence:
        """As float32."""
        return self.to(_float)

    def double(self) -> PackedSequence:
        """As float64."""
        return self.to(_double)

    def half(self) -> PackedSequence:
        """As float16."""
        return self.to(_half)

    def long(self) -> PackedSequence:
        """As int64."""
        return self.to(_long)

    def int(self) -> PackedSequence:
        """As int32."""
        return self.to(_int)

    def short(self) -> PackedSequence:
        """As int16."""
        return self.to(_short)

    def char(self) -> PackedSequence:
        """As int8."""
        return self.to(_char)

    def byte(self) -> PackedSequence:
        """As uint8."""
        return self.to(_byte)

    def cpu(self) -> PackedSequence:
        """Itself: all tensors are in main memory."""
        return self

    def pin_memory(self) -> PackedSequence:
        """Itself: there is no device that needs pinned memory."""
        return self

    def is_pinned(self) -> bool:
        """False."""
        return False

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Any) -> Any:
    """The inverse of a permutation; `None` for `None`.

    Args:
        permutation: integers (N).
    """
    if permutation is None:
        return None
    return tensor(np.argsort(permutation.array, kind="stable"))


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences (L, N, ...).

    Args:
        input: (L, N, ...).
        lengths: of each sequence, above 0.
        batch_first: the input is (N, L, ...).
        enforce_sorted: require the longest first; otherwise they are sorted here.

    Raises:
        ShapeError: the lengths do not fit, or the sequences are not sorted.

    >>> import weft as wf
    >>> packed = pack_padded_sequence(wf.tensor([[1, 4], [2, 5], [3, 0]]), [3, 2])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 5, 3], [2, 2, 1])
    """
    counts = np.asarray(lengths.array if isinstance(lengths, Handle) else lengths, np.int64)
    dims = dims_of(input)
    if len(dims) < 2 or counts.shape != (dims[1 - batch_first],):
        raise ShapeError.here(
            f"pack_padded_sequence: expected a length for each sequence of an input {show(dims)}, "
            f"got lengths of shape {show(counts.shape)}"
        )
    steps = dims[int(batch_first)]
    if not counts.size or counts.min() < 1 or counts.max() > steps:
        raise ShapeError.here(
            f"pack_padded_sequence: expected lengths from 1 to {steps}, got {counts.tolist()}"
        )
    order = np.argsort(-counts, kind="stable")
    if enforce_sorted and (np.diff(counts) > 0).any():
        raise ShapeError.here(
            "pack_padded_sequence: lengths must be sorted in decreasing order with enforce_sorted; "
            "You can pass `enforce_sorted=False`"
        )
    sizes = (counts[:, None] > np.arange(counts.max())).sum(axis=0)
    rows = [(t, order[:n]) for t, n in enumerate(sizes)]
    width = dims[1 - batch_first]
    places = np.concatenate([b * steps + t if batch_first else t * width + b for t, b in rows])
    flat = input.reshape(-1, *dims[2:])
    packed = PackedSequence(index_select(flat, 0, tensor(places)), tensor(sizes))
    if enforce_sorted:
        return packed
    indices = tensor(order)
    return packed._replace(sorted_indices=indices, unsorted_indices=invert_permutation(indices))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Unpack to padded sequences (L, N, ...), and their lengths.

    Args:
        sequence: the packed sequences.
        batch_first: the result is (N, L, ...).
        padding_value: what is added.
        total_length: pad to this length.

    Raises:
        ShapeError: `total_length` is less than the longest sequence.
    """
    sizes: list[int] = sequence.batch_sizes.tolist()
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ShapeError.here(
            f"pad_packed_sequence: expected total_length of at least {len(sizes)}, got {steps}"
        )
    places = np.full((steps, sizes[0]), sum(sizes), np.int64)  # initially of the padding
    start = 0
    for t, n in enumerate(sizes):
        places[t, :n] = np.arange(start, start + n)
        start += n
    lengths = (places < start).sum(axis=0)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices.array
        places, lengths = places[:, back], lengths[back]
    places = places.T if batch_first else places
    data = sequence.data
    rest = dims_of(data)[1:]
    padding = zeros(1, *rest, dtype=data.dtype).fill_(padding_value)
    flat = index_select(cat([data, padding]), 0, tensor(places.reshape(-1)))
    return flat.reshape(*places.shape, *rest), tensor(lengths)


def runs(sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Runs of time steps with one batch size: start of the entries, number of steps, and size."""
    start = 0
    for size, same in groupby(sizes):
        steps = len(list(same))
        yield start, steps, size
        start += steps * size


def run_forwards(
    x: Any, sizes: Sequence[int], states: list[Any], direction: Direction
) -> tuple[Any, ...]:
    """Run a layer over packed entries; returns packed outputs and each sequence's last states."""
    outputs: list[Any] = []
    ended: list[list[Any]] = []  # states of sequences that have ended, the shortest first
    for start, steps, n in runs(sizes):
        if outputs:
            ended.append([s[n:] for s in states])
            states = [s[:n] for s in states]
        y, *states = direction(_steps(x, start, steps, n), states)
        outputs.append(y.reshape(steps * n, dims_of(y)[-1]))
    last = [states, *ended[::-1]]
    return cat(outputs), *[cat(list(states_of_one)) for states_of_one in zip(*last, strict=True)]


def run_backwards(
    x: Any, sizes: Sequence[int], states: list[Any], direction: Direction
) -> tuple[Any, ...]:
    """Like `run_forwards`, from the last step to the first; a sequence starts at its end."""
    outputs: list[Any] = []
    now: list[Any] = []
    for start, steps, n in reversed(list(runs(sizes))):
        if now:
            more = n - dims_of(now[0])[0]
            first = [_begun(s, old, n - more, n) for s, old in zip(states, now, strict=True)]
            now = [cat([old, new]) for old, new in zip(now, first, strict=True)]
        else:
            now = [None if s is None else s[:n] for s in states]
        y, *now = direction(_steps(x, start, steps, n), now)
        outputs.append(y.reshape(steps * n, dims_of(y)[-1]))
    return cat(outputs[::-1]), *now


def _begun(state: Any, like: Any, start: int, end: int) -> Any:
    """The initial states of sequences `start` to `end`."""
    if state is not None:
        return state[start:end]
    return zeros(end - start, dims_of(like)[1], dtype=like.dtype)


def _steps(x: Any, start: int, steps: int, n: int) -> Any:
    return x[start : start + steps * n].reshape(steps, n, dims_of(x)[-1])
