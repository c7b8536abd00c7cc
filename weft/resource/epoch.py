"""What input pipelines count: epochs of rows, each in an order of its own."""

from __future__ import annotations

import glob
import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, EndOfDataError
from weft.host.mix import mix
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Array, Cancellation, Resource, register


class _Counted(Resource):
    """Something with one method, whose calls are counted."""

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._lock = threading.Lock()
        self.count = 0

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """The result of the next call.

        Raises:
            EndOfDataError: the limit is reached.
            ArgumentError: there is no such method.
        """
        del options, cancel
        if method != "next":
            raise ArgumentError(f"{self.what}: expected next, got {method!r}")
        with self._lock:
            return self.next(inputs)

    def next(self, inputs: Sequence[Array]) -> list[Array]:
        """The result, with the lock held; an error does not count."""
        raise NotImplementedError

    def close(self) -> None:
        """Nobody waits for it."""


@register("InputEpochs")
class InputEpochs(_Counted):
    """Gives its inputs a number of times; with `shuffle`, their rows in a drawn order each time.

    The order of an epoch follows from the seeds and its number.
    """

    family = what = "epochs"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._limit: Final[int | None] = spec.option("num_epochs")
        self._shuffle: Final[bool] = spec.option("shuffle", False)
        self._full: Final[bool] = spec.option("not_empty", False)
        seeds: Sequence[int] | None = spec.option("random_seeds")
        self._seeds: Final = (secrets.randbits(64),) if seeds is None else tuple(seeds)

    def next(self, inputs: Sequence[Array]) -> list[Array]:
        """The next epoch."""
        if self._full and not inputs[0].size:
            text = "string_input_producer requires a non-null input tensor"
            raise ArgumentError(f"{self.name}: {text}")
        if self._limit is not None and self.count >= self._limit:
            raise EndOfDataError(f"Reached limit of {self._limit}: {self.name}")
        self.count += 1
        if not self._shuffle:
            return [np.array(x) for x in inputs]
        key = mix(*self._seeds, self.count)
        order = np.random.Generator(np.random.Philox(key=key)).permutation(len(inputs[0]))
        return [x[order] for x in inputs]


@register("MatchingFilesOnce")
class MatchingFilesOnce(_Counted):
    """The files that match patterns, as they were at the first call; sorted."""

    family = what = "files"
    _found: Array

    def next(self, inputs: Sequence[Array]) -> list[Array]:
        """The files."""
        if not self.count:
            patterns = [p.decode() for p in inputs[0].ravel().tolist()]
            names = sorted({n for p in patterns for n in glob.glob(p)})
            self._found = np.empty(len(names), object)
            self._found[:] = [n.encode() for n in names]
        self.count += 1
        return [np.array(self._found)]
