"""Combinations of several inputs: zipped, concatenated, or sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.host.mix import mix
from weft.pipeline.stage import INFINITE, UNKNOWN, Array, Context, Cursor, Stage, State, View
from weft.pipeline.structure import leaves, map_leaves


class Zip(Stage):
    """Zipped elements, as many as the shortest input has.

    `shape` is a structure of tuples and dicts whose leaves are stages.
    """

    def __init__(self, shape: Any) -> None:
        self.inputs = tuple(leaves(shape))
        numbers = iter(range(len(self.inputs)))
        self.shape = map_leaves(lambda _: next(numbers), shape)

    def element(self, parts: Sequence[Any]) -> Any:
        """An element of each input."""
        return map_leaves(lambda i: parts[i], self.shape)

    def indexed(self, context: Context) -> View | None:
        """Elements by index."""
        views = [v for stage in self.inputs if (v := stage.view(context)) is not None]
        return _Zipped(self, views) if len(views) == len(self.inputs) else None

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _Zip(self, [stage.open(context) for stage in self.inputs])

    def count(self) -> int:
        """The shortest input's size."""
        counts = [stage.count() for stage in self.inputs]
        finite = [n for n in counts if n != INFINITE]
        if UNKNOWN in counts:
            return UNKNOWN
        return min(finite) if finite else INFINITE


class _Zipped(View):
    def __init__(self, stage: Zip, views: Sequence[View]) -> None:
        self.stage = stage
        self.views = views
        self.size = min(view.size for view in views)

    def item(self, index: int) -> Any:
        return self.stage.element([view.item(index) for view in self.views])

    def gather(self, indices: Array) -> Any:
        return self.stage.element([view.gather(indices) for view in self.views])


class Several(Cursor):
    """A cursor over several inputs."""

    def __init__(self, sources: Sequence[Cursor]) -> None:
        self.sources = list(sources)

    def state(self) -> State:
        """The inputs' states."""
        return {"inputs": [source.state() for source in self.sources]}

    def restore(self, state: State) -> None:
        """Restore the inputs."""
        for source, each in zip(self.sources, state["inputs"], strict=True):
            source.restore(each)

    def close(self) -> None:
        """Close the inputs."""
        for source in self.sources:
            source.close()


class _Zip(Several):
    def __init__(self, stage: Zip, sources: Sequence[Cursor]) -> None:
        super().__init__(sources)
        self.stage = stage

    def __next__(self) -> Any:
        parts: list[Any] = []
        failure: Exception | None = None
        for source in self.sources:
            try:
                parts.append(next(source))
            except StopIteration:
                raise
            # advance the others, too, or later elements would be paired wrongly
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return self.stage.element(parts)


class Concatenate(Stage):
    """The inputs one after the other."""

    def __init__(self, sources: Sequence[Stage]) -> None:
        self.inputs = tuple(sources)

    def indexed(self, context: Context) -> View | None:
        """Elements by index."""
        views = [v for stage in self.inputs if (v := stage.view(context)) is not None]
        return _Joined(views) if len(views) == len(self.inputs) else None

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _Concatenate([stage.open(context) for stage in self.inputs])

    def count(self) -> int:
        """The sum of the inputs' sizes."""
        counts = [stage.count() for stage in self.inputs]
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)


class _Joined(View):
    def __init__(self, views: Sequence[View]) -> None:
        self.views = views
        self.ends = np.cumsum([view.size for view in views])
        self.size = int(self.ends[-1]) if len(views) else 0

    def item(self, index: int) -> Any:
        number = int(np.searchsorted(self.ends, index, "right"))
        return self.views[number].item(index - int(self.ends[number]) + self.views[number].size)

    def gather(self, indices: Array) -> Any:
        numbers = np.searchsorted(self.ends, indices, "right")
        if numbers.min() == numbers.max():
            view = self.views[int(numbers[0])]
            return view.gather(indices - int(self.ends[numbers[0]]) + view.size)
        return super().gather(indices)


class _Concatenate(Several):
    def __init__(self, sources: Sequence[Cursor]) -> None:
        super().__init__(sources)
        self.at = 0

    def __next__(self) -> Any:
        while self.at < len(self.sources):
            try:
                return next(self.sources[self.at])
            except StopIteration:
                self.at += 1
        raise StopIteration

    def state(self) -> State:
        return {**super().state(), "at": self.at}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.at = state["at"]


class Sample(Stage):
    """Each element comes from an input sampled by weights, or chosen by a stage of indices."""

    def __init__(
        self, sources: Sequence[Stage], weights: Sequence[float] | None = None,
        seed: int | None = None, stop_when_empty: bool = False, choice: Stage | None = None,
    ) -> None:  # fmt: skip
        self.sources = len(sources)
        if weights is not None and (len(weights) != len(sources) or min(weights, default=0) < 0):
            raise ArgumentError(
                f"sample_from_datasets: expected {len(sources)} weights of 0 or more, got {weights}"
            )
        self.inputs = (*sources, *(() if choice is None else (choice,)))
        self.weights = [1.0] * len(sources) if weights is None else [float(w) for w in weights]
        self.seed = seed
        self.stop_when_empty = stop_when_empty

    def stream(self, context: Context) -> Cursor:
        """Elements as sampled."""
        seed = mix(self.seed_of(self.seed, context), context.epoch)
        return _Sample([stage.open(context) for stage in self.inputs], self, seed)

    def count(self) -> int:
        """Known only if it is endless."""
        counts = [stage.count() for stage in self.inputs[: self.sources]]
        return INFINITE if INFINITE in counts and not self.stop_when_empty else UNKNOWN


class _Sample(Several):
    def __init__(self, sources: Sequence[Cursor], stage: Sample, seed: int) -> None:
        super().__init__(sources)
        self.stage = stage
        self.seed = seed
        self.draws = 0
        self.weights = list(stage.weights)

    def _draw(self) -> int:
        """The index of an input that has not ended, or -1."""
        if len(self.sources) > self.stage.sources:
            return int(next(self.sources[-1]))
        total = sum(self.weights)
        if total <= 0:
            return -1
        self.draws += 1
        place = mix(self.seed, self.draws) / 2**64 * total
        for number, weight in enumerate(self.weights):
            place -= weight
            if place < 0 and weight > 0:
                return number
        return max(i for i, weight in enumerate(self.weights) if weight > 0)

    def __next__(self) -> Any:
        while (number := self._draw()) >= 0:
            try:
                return next(self.sources[number])
            except StopIteration:
                if self.stage.stop_when_empty:
                    self.weights = [0.0] * len(self.weights)
                self.weights[number] = 0.0
        raise StopIteration

    def state(self) -> State:
        return {**super().state(), "draws": self.draws, "weights": list(self.weights)}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.draws, self.weights = state["draws"], list(state["weights"])
