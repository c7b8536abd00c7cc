"""Grouping: sliding windows, and batches of elements of similar length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.pipeline.batch import padded
from weft.pipeline.call import called
from weft.pipeline.saved_state import Held
from weft.pipeline.stage import INFINITE, UNKNOWN, Behind, Context, Cursor, Stage, State


class Window(Stage):
    """Windows of `size` elements `stride` apart; each starts `shift` after the previous one.

    Args:
        made: makes a window of a list of elements.
    """

    def __init__(
        self, source: Stage, size: int, shift: int | None = None, stride: int = 1,
        drop: bool = False, made: Callable[[list[Any]], Any] = list,
    ) -> None:  # fmt: skip
        shift = size if shift is None else shift
        if min(size, shift, stride) < 1:
            text = f"size, shift and stride of 1 or more, got {size}, {shift} and {stride}"
            raise ArgumentError(f"window: expected {text}")
        self.name = f"window({size}, {shift}, {stride})"
        self.inputs = (source,)
        self.size, self.shift, self.stride = size, shift, stride
        self.drop = drop
        self.made = made

    def stream(self, context: Context) -> Cursor:
        """Windows in order."""
        return _Window(self.inputs[0].open(context), self)

    def count(self) -> int:
        """The number of windows."""
        count = self.inputs[0].count()
        if count < 0:
            return count
        span = (self.size - 1) * self.stride
        return len(range(0, max(count - span, 0) if self.drop else count, self.shift))


class _Window(Behind):
    def __init__(self, source: Cursor, stage: Window) -> None:
        super().__init__(source)
        self.stage = stage
        self.held: list[Any] = []
        self.skip = 0  # elements to skip before the next window

    def __next__(self) -> Any:
        stage = self.stage
        while self.skip:
            next(self.source)
            self.skip -= 1
        span = (stage.size - 1) * stage.stride + 1
        while len(self.held) < span:
            try:
                self.held.append(next(self.source))
            except StopIteration:
                break
        if not self.held or (stage.drop and len(self.held) < span):
            raise StopIteration
        window = self.held[:: stage.stride]
        self.skip = max(stage.shift - len(self.held), 0)
        if len(self.held) < span:
            self.skip = 0  # the input has ended
        self.held = self.held[stage.shift :]
        return stage.made(window)

    def state(self) -> State:
        return {**super().state(), "held": Held(self.held), "skip": self.skip}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.held, self.skip = list(state["held"]), state["skip"]


class Bucket(Stage):
    """Padded batches of elements whose lengths lie between the same boundaries.

    Args:
        length: gives an element's length.
        sizes: batch sizes, one more than boundaries.
        to_boundary: whether to pad to the bucket's boundary.
        join: makes a batch of elements without padding.
    """

    name = "bucket_by_sequence_length"

    def __init__(
        self, source: Stage, length: Callable[..., Any], boundaries: Sequence[int],
        sizes: Sequence[int], drop: bool = False,
        join: Callable[[list[Any], int | None], Any] | None = None,
    ) -> None:  # fmt: skip
        if len(sizes) != len(boundaries) + 1 or min(sizes, default=0) < 1:
            raise ArgumentError(
                f"{self.name}: expected {len(boundaries) + 1} batch sizes of 1 or more for "
                f"{len(boundaries)} boundaries, got {list(sizes)}"
            )
        if sorted(set(boundaries)) != list(boundaries):
            text = f"expected rising boundaries, got {list(boundaries)}"
            raise ArgumentError(f"{self.name}: {text}")
        self.inputs = (source,)
        self.length = length
        self.boundaries, self.sizes = list(boundaries), list(sizes)
        self.drop = drop
        self.join = join or (lambda elements, boundary: padded(elements))

    def stream(self, context: Context) -> Cursor:
        """Batches as their buckets fill up, then the incomplete ones from short to long."""
        return _Bucket(self.inputs[0].open(context), self)

    def count(self) -> int:
        """UNKNOWN, unless the input is empty or endless."""
        count = self.inputs[0].count()
        return count if count in (0, INFINITE) else UNKNOWN


class _Bucket(Behind):
    def __init__(self, source: Cursor, stage: Bucket) -> None:
        super().__init__(source)
        self.stage = stage
        self.held: list[list[Any]] = [[] for _ in stage.sizes]
        self.position = 0

    def __next__(self) -> Any:
        stage = self.stage
        for element in self.source:
            length = int(called(stage.length, element, stage.name, self.position))
            self.position += 1
            number = bisect_right(stage.boundaries, length)
            self.held[number].append(element)
            if len(self.held[number]) == stage.sizes[number]:
                return self._taken(number)
        if not stage.drop:
            for number, held in enumerate(self.held):
                if held:
                    return self._taken(number)
        raise StopIteration

    def _taken(self, number: int) -> Any:
        held, self.held[number] = self.held[number], []
        boundaries = self.stage.boundaries
        return self.stage.join(held, boundaries[number] if number < len(boundaries) else None)

    def state(self) -> State:
        held = [Held(bucket) for bucket in self.held]
        return {**super().state(), "held": held, "position": self.position}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.held = [list(bucket) for bucket in state["held"]]
        self.position = state["position"]
