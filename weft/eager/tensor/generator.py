"""Random generators: a seed and a counter of calls.

Every random operation takes the next counter of its generator and draws numbers from that alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import reduce
from threading import get_ident
from typing import Any, Final

import numpy as np

from weft.eager.record.pending.access import array_of
from weft.eager.tensor.device import CPU, check_device
from weft.eager.tensor.dispatch import lazy_of, leaf, wrap
from weft.errors import DTypeError, OutOfRangeError
from weft.ir.dtype import uint8
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


def _joined(seed: int, word: int) -> int:
    return splitmix64((3 * seed + word) & _WORD)


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
            raise OutOfRangeError.here(f"manual_seed: expected a number of 64 bits, got {seed}")
        self._seed = int(seed) & _WORD
        self._start = splitmix64(self._seed)
        self._calls = 0
        return self

    def seed(self) -> int:
        """Seed from the system's randomness; returns the seed."""
        seed = int.from_bytes(os.urandom(8), "little") >> 1
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._seed

    def next(self) -> int:
        """The counter of the next call, of this thread's `Streams` if there are any."""
        if _inside:  # most programs have none
            streams = _inside.get(get_ident())
            if streams is not None:
                return streams.next(self)
        return self.advance()

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
            raise DTypeError.here(f"set_state: expected 24 numbers of uint8, got {array.type}")
        found = np.ascontiguousarray(array_of(array)).view(np.uint64)
        self._seed, self._start, self._calls = map(int, found)
        return self

    def clone_state(self) -> Generator:
        """A generator of its own in the same state."""
        return copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (), (self._seed, self._start, self._calls)

    def __setstate__(self, state: tuple[int, int, int]) -> None:
        self._seed, self._start, self._calls = state


class Streams:
    """A block inside which this thread draws from other streams than the generators' own."""

    _before: Streams | None = None

    def __enter__(self) -> None:
        self._before = _inside.get(get_ident())
        _inside[get_ident()] = self

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            _inside.pop(get_ident(), None)
        else:
            _inside[get_ident()] = self._before

    def next(self, generator: Generator) -> int:
        """The counter of a generator's next call."""
        raise NotImplementedError


_inside: Final[dict[int, Streams]] = {}  # by thread
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inside.clear)  # its threads are other ones


class DrawnApart(Streams):
    """Inside, the default generator of this thread is one of its own, given by numbers.

    So what a thread draws does not depend on the others, which share the default generator.
    """

    def __init__(self, *key: int) -> None:
        self.key = key
        self._stream: Generator | None = None

    def restart(self) -> None:
        """Start from the seed again."""
        self._stream = None

    @property
    def stream(self) -> Generator:
        """The generator of the block, made when it is first used."""
        if self._stream is None:
            self._stream = Generator().manual_seed(reduce(_joined, self.key, 0))
        return self._stream

    def next(self, generator: Generator) -> int:
        """The counter of a generator's next call."""
        return (self.stream if generator is default_generator else generator).advance()


class Branch(Streams):
    """Inside, each generator draws from another stream: a part of a computation has its own.

    Args:
        start: gives the number with which a generator's stream begins, at its first draw.
    """

    def __init__(self, start: Callable[[Generator], int]) -> None:
        self._start = start
        self._streams: dict[Generator, int] = {}

    def next(self, generator: Generator) -> int:
        """The counter of a generator's next call."""
        last = self._streams.get(generator)
        found = splitmix64(self._start(generator)) if last is None else (last + 1) & _WORD
        self._streams[generator] = found
        return found


def in_branch() -> bool:
    """Whether this thread is inside of a `Branch`."""
    return isinstance(_inside.get(get_ident()), Branch)


def restart_stream() -> None:
    """Draw the numbers of this thread's innermost `DrawnApart` again, if there is one."""
    block = _inside.get(get_ident())
    if isinstance(block, DrawnApart):
        block.restart()


class _DefaultGenerator(Generator):
    """The generator of the process; inside `DrawnApart`, that of the thread."""

    def _of_thread(self) -> Generator | None:
        block = _inside.get(get_ident())
        return block.stream if isinstance(block, DrawnApart) else None

    def manual_seed(self, seed: int) -> Generator:
        own = self._of_thread()
        if own is None:
            return super().manual_seed(seed)
        own.manual_seed(seed)
        return self

    def initial_seed(self) -> int:
        own = self._of_thread()
        return super().initial_seed() if own is None else own.initial_seed()

    def get_state(self) -> Any:
        own = self._of_thread()
        return super().get_state() if own is None else own.get_state()

    def set_state(self, state: Any) -> Generator:
        own = self._of_thread()
        if own is None:
            return super().set_state(state)
        own.set_state(state)
        return self


default_generator: Final[Generator] = _DefaultGenerator()
