"""Buckets of gradients that hooks of programs reduce."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from weft.collectives.recorded import buckets_of
from weft.eager.functions.api import Tensor, cat, no_grad

Hook = Callable[[Any, "GradBucket"], Any]


class GradBucket:
    """Gradients that are reduced together, as one vector.

    Args:
        buffer: the vector.
        parameters: whose gradients it has.
        index: the bucket's number.
        last: whether it is the backward pass's last one.
    """

    def __init__(
        self, buffer: Tensor, parameters: Sequence[Tensor], index: int = 0, last: bool = True
    ) -> None:  # fmt: skip
        self._buffer, self._parameters = buffer, list(parameters)
        self._index, self._last = index, last

    def buffer(self) -> Tensor:
        """All gradients, as one vector."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the vector."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the vector."""
        return shares(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """Whose gradients these are."""
        return self._parameters

    def index(self) -> int:
        """The bucket's number; buckets are numbered as they become ready."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last one of a backward pass."""
        return self._last


def shares(vector: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a vector, in the shapes of parameters."""
    ends = list(itertools.accumulate([p.numel() for p in parameters], initial=0))
    pairs = zip(parameters, itertools.pairwise(ends), strict=True)
    return [vector[a:b].view(p.shape) for p, (a, b) in pairs]


def hooked(hook: Hook, state: Any, parameters: Sequence[Any], limit: int) -> None:
    """Replace gradients by what a hook makes of each bucket of at most `limit` bytes."""
    kinds: dict[Any, list[Any]] = {}
    for p in parameters:
        kinds.setdefault(p.grad.dtype, []).append(p)
    lists: list[Sequence[Any]] = []
    for members in kinds.values():
        counts = buckets_of([p.numel() * p.grad.dtype.itemsize for p in members], limit)
        ends = itertools.pairwise(itertools.accumulate(counts, initial=0))
        lists += [members[a:b] for a, b in ends]
    with no_grad():
        buckets = [
            GradBucket(cat([p.grad.reshape(-1) for p in some]), some, i, i + 1 == len(lists))
            for i, some in enumerate(lists)
        ]
        futures = [hook(state, bucket) for bucket in buckets]  # all are begun before any is awaited
        for some, future in zip(lists, futures, strict=True):
            found = future.wait()
            reduced = found[0] if isinstance(found, list | tuple) else found
            for p, g in zip(some, shares(reduced, some), strict=True):
                p.grad = g.to(p.grad.dtype)
