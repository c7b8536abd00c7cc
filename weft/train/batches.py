"""Batches of a loader: their number and sizes, conversion to tensors, and resuming."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from weft.checkpoint import RandomState
from weft.eager.functions.api import Tensor, from_numpy
from weft.errors import ArgumentError, DataError
from weft.host.nested import NESTED

Limit = float | int | None
_END: Final = object()


def tensors(batch: Any) -> Any:
    """A batch with NumPy arrays replaced by tensors."""
    return NESTED.mapped(_tensor, batch)


def _tensor(x: Any) -> Any:
    numeric = isinstance(x, np.ndarray) and x.dtype.kind not in "USO"
    return from_numpy(x) if numeric else x


def size_of(batch: Any) -> int:
    """The size of a batch: its `rows`, or the first dimension of its first array; else 1."""
    kind = type(batch)
    first = batch[0] if (kind is tuple or kind is list) and batch else batch
    if isinstance(first, Tensor) and first.lazy.type.shape:
        return first.lazy.type.shape[0] or 0
    rows = getattr(batch, "rows", None)
    if isinstance(rows, int):
        return rows
    waiting = [batch]
    while waiting:
        x = waiting.pop(0)
        if isinstance(x, Tensor | np.ndarray):
            return int(x.shape[0]) if x.ndim else 1
        if isinstance(x, Mapping):
            waiting = [*x.values(), *waiting]
        elif isinstance(x, list | tuple):
            waiting = [*x, *waiting]
    return 1


def count_of(loader: Any, limit: Limit, name: str) -> float:
    """How many batches of a loader are used; infinite if it has no length.

    Args:
        limit: a number of batches, or a fraction of them.

    Raises:
        ArgumentError: a fraction of a loader without a length, or a limit out of range.
    """
    known = length_of(loader)
    check_limit(limit, name)
    if limit is None:
        return known
    if isinstance(limit, int):
        return min(known, limit)
    if limit in (0.0, 1.0):
        return known if limit else 0
    if known == math.inf:
        raise ArgumentError.here(
            f"Trainer: expected {name} as a number of batches, as the loader has no length, got "
            f"{limit!r}"
        )
    if known and not int(known * limit):
        raise ArgumentError.here(
            f"Trainer: expected {name} of at least one of the {known} batches, got {limit!r}, "
            f"which is none; give a number of batches"
        )
    return int(known * limit)


def check_limit(limit: Any, name: str) -> None:
    """Require a part or a number of batches, or `None`.

    Raises:
        ArgumentError: it is neither.
    """
    if limit is None:
        return
    if not is_number(limit) or limit < 0 or (isinstance(limit, float) and limit > 1):
        raise ArgumentError.here(
            f"Trainer: expected {name} as a part from 0.0 to 1.0 or a number of batches, got "
            f"{limit!r}"
        )


def is_number(x: Any) -> bool:
    """Whether it is a real number, and not NaN."""
    return isinstance(x, int | float | np.integer | np.floating) and x == x


def whole(name: str, value: Any, least: int) -> int:
    """A trainer's argument that is an integer; whole floats are converted.

    Raises:
        ArgumentError: it is none, or less than `least`.
    """
    number = isinstance(value, int | np.integer) or (
        isinstance(value, float | np.floating) and float(value).is_integer()
    )
    if not number or value < least:
        raise ArgumentError.here(
            f"Trainer: expected {name} as an integer from {least} on, got {value!r}"
        )
    return int(value)


def length_of(loader: Any) -> float:
    """The number of batches of a loader; infinite if it has no length."""
    try:
        return len(loader)
    except TypeError:  # no length, or the loader does not know it
        return math.inf


def is_loader(x: Any) -> bool:
    """Whether something yields batches and is not a batch itself; a list of tuples does."""
    if isinstance(x, list):
        return bool(x) and all(isinstance(item, tuple | list | Mapping) for item in x)
    plain = (Tensor, np.ndarray, Mapping, tuple, str)
    return isinstance(x, Iterable) and not isinstance(x, plain)


class Batches:
    """The batches of epoch after epoch, with a resumable position.

    A loader with `state_dict` and `load_state_dict` keeps its own position. For others, a resumed
    run skips the batches that were used, after restoring the random state of the epoch's start so
    that the order is the same.

    Args:
        loader: yields an iterator of batches per epoch.
        most: the maximum number of batches per epoch.

    Attributes:
        exhausted: whether the loader has ended the epoch.
    """

    def __init__(self, loader: Any, most: float) -> None:
        self.loader = loader
        self.most = most
        self.exhausted = False
        self._iterator: Iterator[Any] = iter(())  # kept while its state may be needed
        self._random = RandomState()
        self._begin: Mapping[str, Any] | None = None
        self._resume: Mapping[str, Any] | None = None
        self._place: Mapping[str, Any] | None = None  # of the loader, before a look ahead
        self._keeps_its_place = hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")

    def epoch(self, number: int, taken: int) -> Iterator[Any]:
        """The epoch's remaining batches."""
        for owner in (
            self.loader,
            *[getattr(self.loader, n, None) for n in ("sampler", "dataset")],
        ):
            if callable(set_epoch := getattr(owner, "set_epoch", None)):
                set_epoch(number)
        self.exhausted, self._place = False, None
        self._iterator = self._opened(taken)
        return self._taken_from(self._iterator, taken)

    def _taken_from(self, iterator: Iterator[Any], taken: int) -> Iterator[Any]:
        while taken < self.most:
            batch = next(iterator, _END)
            if batch is _END:
                self.exhausted = True
                return
            taken += 1
            yield batch

    def ends_here(self) -> bool:
        """Whether the last batch was the loader's last, which one of unknown length reveals only
        when asked for more; nothing is taken from the epoch after that.
        """
        if self.most == math.inf and not self.exhausted and self._place is None:
            if self._keeps_its_place:
                self._place = self.loader.state_dict()
            self.exhausted = next(self._iterator, _END) is _END
        return self.exhausted

    def _opened(self, taken: int) -> Iterator[Any]:
        state, self._resume = self._resume, None
        if state is None:
            self._begin = self._random.state_dict()
            return iter(self.loader)
        self._begin = state["begin"]
        if state["loader"] is None or not self._keeps_its_place:
            return self._skipped(state["begin"], taken)
        now = self._random.state_dict()
        self.loader.load_state_dict(state["loader"])
        iterator = iter(self.loader)
        self._random.load_state_dict(now)  # the epoch's random numbers were drawn before
        if not state["is_over"]:
            return iterator
        self._begin = self._random.state_dict()
        return iter(self.loader)  # the next epoch

    def _skipped(self, begin: Mapping[str, Any], taken: int) -> Iterator[Any]:
        now = self._random.state_dict()
        if taken:
            self._random.load_state_dict(begin)
        else:
            self._begin = now
        iterator = iter(self.loader)
        for number in range(taken):
            if next(iterator, _END) is _END:
                raise DataError.here(
                    f"Trainer.fit: expected {taken} batches before the place to go on from, got "
                    f"{number}; the data is not that of the run that was saved"
                )
        if taken:
            self._random.load_state_dict(now)
        return iterator

    def state_dict(self, is_over: bool, is_closed: bool = False) -> dict[str, Any]:
        """The position in the epoch.

        Args:
            is_over: whether all its batches were used.
            is_closed: whether the next epoch comes next.
        """
        own = self._place
        if self._keeps_its_place and (own is None or self.exhausted):
            own = self.loader.state_dict()
        begin = self._random.state_dict() if self._begin is None else self._begin
        return {
            "begin": begin,
            "loader": own,
            "is_over": is_over and not self.exhausted,
            "exhausted": self.exhausted and not is_closed,
        }

    def has_ended(self) -> bool:
        """Whether a resumed epoch has no batches left; the next epoch begins anew then."""
        state = self._resume
        if state is None or not state["exhausted"]:
            return False
        self._resume, self._begin, self.exhausted = None, state["begin"], True
        if state["loader"] is not None and self._keeps_its_place:
            now = self._random.state_dict()
            self.loader.load_state_dict(state["loader"])
            self._random.load_state_dict(now)
        return True

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next epoch start at this position."""
        self._resume = state
