"""Random generators: a seed and a counter of calls.

Every random operation takes the next counter of its generator and draws numbers from that alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from weft.eager.record.access import array_of
from weft.eager.tensor.device import CPU, check_device
from weft.eager.tensor.dispatch import lazy_of, leaf, wrap
from weft.errors import DTypeError, OutOfRangeError
from weft.ir.dtype import uint8
from weft.ops.base import at_user_line
from weft.runtime.flight import LEAF, new_lock

_WORD: Final = (1 << 64) - 1


def splitmix64(seed: int) -> int:
    """Mix a seed to 64 bits that differ from those of other seeds.

    Source: Steele et al., "Fast splittable pseudorandom number generators", 2014.
    """
    z = (seed + 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)


class Generator:
    """A random generator.

    >>> import weft as wf
    >>> a = wf.rand(3, generator=wf.Generator().manual_seed(1))
    >>> b = wf.rand(3, generator=wf.Generator().manual_seed(1))
    >>> a.tolist() == b.tolist()
    True
    """

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self.device = CPU
        self._lock = new_lock(LEAF)
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of this seed.

        Raises:
            OutOfRangeError: it exceeds 64 bits.
        """
        if not -(1 << 63) <= int(seed) <= _WORD:
            text = f"manual_seed: expected a number of 64 bits, got {seed}"
            raise OutOfRangeError(text + at_user_line())
        self._seed = int(seed) & _WORD
        self._start = splitmix64(self._seed)
        self._calls = 0
        return self

    def seed(self) -> int:
        """Seed from the system's randomness; returns the seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._seed

    def next(self) -> int:
        """The counter of the next call."""
        branch = current_branch() if _branches else None
        return self.advance() if branch is None else branch.next(self)

    def advance(self) -> int:
        """The counter of the next call of the generator's own stream."""
        with self._lock:
            self._calls += 1
            return (self._start + self._calls) & _WORD

    def get_state(self) -> Any:
        """The state of the generator, as a uint8 tensor."""
        state = np.array([self._seed & _WORD, self._start, self._calls], np.uint64)
        return wrap(leaf(state.view(np.uint8)))

    def set_state(self, state: Any) -> Generator:
        """Restore a state from `get_state`.

        Raises:
            DTypeError: it is no state of a generator.
        """
        array = lazy_of(state)
        if array.type.dtype is not uint8 or array.type.shape != (24,):
            text = f"set_state: expected 24 numbers of uint8, got {array.type}"
            raise DTypeError(text + at_user_line())
        found = np.ascontiguousarray(array_of(array)).view(np.uint64)
        self._seed, self._start, self._calls = map(int, found)
        return self


class Branch:
    """Streams that take the place of all generators' own within a part of a computation.

    Args:
        start: gives the number with which a generator's stream begins, at its first draw.
    """

    def __init__(self, start: Callable[[Generator], int]) -> None:
        self._start = start
        self._thread = threading.get_ident()
        self._streams: dict[Generator, int] = {}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Inside, this thread draws from the streams."""
        _branches.append(self)
        try:
            yield
        finally:
            _branches.remove(self)

    def next(self, generator: Generator) -> int:
        """The counter of a generator's next call."""
        last = self._streams.get(generator)
        found = splitmix64(self._start(generator)) if last is None else (last + 1) & _WORD
        self._streams[generator] = found
        return found

    @property
    def is_own(self) -> bool:
        """Whether it was made by this thread."""
        return self._thread == threading.get_ident()


_branches: Final[list[Branch]] = []


def current_branch() -> Branch | None:
    """What this thread draws from instead of generators' own streams."""
    return next((each for each in reversed(_branches) if each.is_own), None)


default_generator: Final = Generator()
