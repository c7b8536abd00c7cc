"""`CombinedLoader`: several loaders as one, whose batches have a batch of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from weft.errors import ArgumentError
from weft.train.batches import is_loader, length_of

MODES: Final = ("min_size", "max_size_cycle", "max_size", "sequential")
_END: Final = object()


class CombinedLoader:
    """Several loaders as one.

    Iterating gives (batch, batch_idx, dataloader_idx). Except for `"sequential"`, a batch has the
    loaders' structure, and the last number is 0.

    Args:
        iterables: loaders, nested in dictionaries, lists and tuples.
        mode: `"min_size"` ends with the shortest loader; `"max_size_cycle"` ends with the longest,
            and begins the others anew; `"max_size"` gives `None` for those that have ended;
            `"sequential"` gives one loader's batches after the other's.

    Raises:
        ArgumentError: the mode is unknown.

    >>> loader = CombinedLoader({"a": [1, 2, 3], "b": [4, 5]}, "max_size_cycle")
    >>> [batch for batch, _, _ in loader]
    [{'a': 1, 'b': 4}, {'a': 2, 'b': 5}, {'a': 3, 'b': 4}]
    """

    def __init__(self, iterables: Any, mode: str = "min_size") -> None:
        if mode not in MODES:
            raise ArgumentError.here(f"CombinedLoader: expected mode of {MODES}, got {mode!r}")
        self.iterables, self.mode = iterables, mode
        self.flattened: list[Any] = list(_loaders(iterables))
        self.limits: list[float] | None = None

    def __len__(self) -> int:
        """The number of batches of an epoch.

        Raises:
            TypeError: a loader has no length.
        """
        counts = [length_of(x) for x in self.flattened]
        limits = self.limits or [math.inf] * len(counts)
        counts = [min(pair) for pair in zip(counts, limits, strict=True)]
        whole = {"min_size": min, "sequential": sum}.get(self.mode, max)(counts) if counts else 0
        if whole == math.inf:
            raise TypeError("CombinedLoader: a loader has no length")
        return int(whole)

    def __iter__(self) -> Iterator[tuple[Any, int, int]]:
        if self.mode == "sequential":
            for number, loader in enumerate(self.flattened):
                most = None if self.limits is None else self.limits[number]
                for i, batch in enumerate(loader):
                    if most is not None and i >= most:
                        break
                    yield batch, i, number
            return
        for i, batch in enumerate(self.batches()):
            yield batch, i, 0

    def batches(self) -> Iterator[Any]:
        """The batches of an epoch, each with one of every loader."""
        iterators: list[Iterator[Any]] = [iter(x) for x in self.flattened]
        over = [False] * len(iterators)
        while iterators:
            row = [next(x, _END) for x in iterators]
            over = [was or x is _END for was, x in zip(over, row, strict=True)]
            if all(over) or (self.mode == "min_size" and any(over)):
                return
            for i, x in enumerate(row):
                if x is _END and self.mode == "max_size_cycle":
                    iterators[i] = iter(self.flattened[i])
                    row[i] = next(iterators[i])
                elif x is _END:
                    row[i] = None
            found = iter(row)
            yield _filled(self.iterables, found)


class Merged:
    """A combined loader whose iteration gives its batches alone, for loops."""

    def __init__(self, loader: CombinedLoader) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        if self.loader.mode == "sequential":
            return (batch for batch, _, _ in self.loader)
        return self.loader.batches()

    def set_epoch(self, epoch: int) -> None:
        """Tell samplers and data sets the epoch."""
        for loader in self.loader.flattened:
            for owner in (loader, *[getattr(loader, n, None) for n in ("sampler", "dataset")]):
                if callable(tell := getattr(owner, "set_epoch", None)):
                    tell(epoch)


def train_loader(given: Any) -> Any:
    """A training loader; several of them, nested or combined, as one."""
    if isinstance(given, CombinedLoader):
        return Merged(given)
    several = isinstance(given, Mapping | list | tuple) and bool(given)
    if several and all(_is_several(x) for x in _values(given)):
        return Merged(CombinedLoader(given, "max_size_cycle"))
    return given


def _is_several(x: Any) -> bool:
    """Whether an element of a container is a loader, or a container of loaders; no batch."""
    if isinstance(x, Mapping):
        return bool(x) and all(_is_several(y) for y in x.values())
    return is_loader(x) and not isinstance(x, list | tuple)


def evaluation_loaders(given: Any) -> list[Any]:
    """Evaluation loaders as a list: one, or several in a list, a dictionary, or combined.

    A list of batches is one loader; so is anything else.
    """
    if given is None:
        return []
    if isinstance(given, CombinedLoader):
        return given.flattened if given.mode == "sequential" else [Merged(given)]
    if isinstance(given, Mapping) or (
        isinstance(given, list | tuple) and given and all(is_loader(x) for x in _values(given))
    ):
        return list(_values(given))
    return [given]


def _values(given: Any) -> Iterable[Any]:
    return given.values() if isinstance(given, Mapping) else given


def _loaders(given: Any) -> Iterator[Any]:
    """The loaders in a structure, in order; a list of batches is a loader."""
    if isinstance(given, Mapping) or (isinstance(given, list | tuple) and _has_loaders(given)):
        for x in _values(given):
            yield from _loaders(x)
    else:
        yield given


def _has_loaders(given: Sequence[Any]) -> bool:
    return bool(given) and all(isinstance(x, Iterable) and not _is_batch(x) for x in given)


def _is_batch(x: Any) -> bool:
    return not is_loader(x) and not isinstance(x, Mapping | list)


def _filled(given: Any, row: Iterator[Any]) -> Any:
    """The structure of loaders, with the next values in their places."""
    if isinstance(given, Mapping):
        return {k: _filled(x, row) for k, x in given.items()}
    if isinstance(given, list | tuple) and _has_loaders(given):
        return type(given)([_filled(x, row) for x in given])
    return next(row)
