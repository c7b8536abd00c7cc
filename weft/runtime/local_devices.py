"""Steps over several devices of this process: their variables, and programs made of stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

import numpy as np

from weft.passes.partition import Partition
from weft.passes.step import Step
from weft.runtime.device.base import Buffer, Device, HostArray
from weft.runtime.flight import new_lock
from weft.runtime.memory.state import State
from weft.runtime.staged import Box, StagedProgram


class DeviceStates(MutableMapping[str, HostArray]):
    """The variables of several devices, each at its home.

    Args:
        states: the variables of each device, by its full name.
        default: the home of what is not told to be elsewhere.

    Attributes:
        homes: the device of each variable that has none yet, by key.
        lock: held while a step runs.
    """

    def __init__(self, states: Mapping[str, State], default: str) -> None:
        self.lock: Final = new_lock()
        self.states: Final = states
        self.homes: dict[str, str] = {}
        self._default: Final = default

    def home(self, key: str) -> str:
        """The device of a variable: where it has a value, or will have one."""
        for name, state in self.states.items():
            if key in state:
                return name
        return self.homes.get(key, self._default)

    @property
    def version(self) -> int:
        """Changes whenever memory of a variable moves."""
        return sum([state.version for state in self.states.values()])

    def memory(self, key: str) -> HostArray:
        """The array that programs read and write, not a copy."""
        return self._at(key).memory(key)

    def reserve(self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostArray:
        """Memory for a variable at its home."""
        return self._at(key).reserve(key, shape, dtype)

    def __getitem__(self, key: str) -> HostArray:
        with self.lock:
            return self._at(key)[key]

    def __setitem__(self, key: str, value: HostArray) -> None:
        with self.lock:
            self._at(key)[key] = value

    def __delitem__(self, key: str) -> None:
        with self.lock:
            del self._at(key)[key]

    def __contains__(self, key: object) -> bool:
        return any([key in state for state in self.states.values()])

    def __iter__(self) -> Iterator[str]:
        for state in self.states.values():
            yield from state

    def __len__(self) -> int:
        return sum(map(len, self.states.values()))

    def _at(self, key: str) -> State:
        return self.states[self.home(key)]


class LocalProgram:
    """A partitioned step as a program.

    Args:
        step: the whole step.
        partition: its stages.
        devices: by full name.
        fetches: how many of the step's fetches are returned, if not all.
    """

    def __init__(
        self, step: Step, partition: Partition, devices: Mapping[str, Device],
        fetches: int | None = None,
    ) -> None:  # fmt: skip
        self.step: Final = step
        self.partition: Final = partition
        self._fetches: Final = partition.fetches[:fetches]
        self._staged: Final = StagedProgram(partition, devices)

    def run(self, arrays: Sequence[Buffer], state: DeviceStates) -> list[Any]:
        """Runs the step once; fresh arrays."""
        partition = self.partition
        box = Box(len(partition.types))
        for number, array in zip(partition.feeds, arrays, strict=True):
            box.put(number, np.ascontiguousarray(array).reshape(np.shape(array)))
        with state.lock:
            self._staged.run(box, state.states)
        fed = set(partition.feeds)
        taken: set[int] = set()
        found: list[Any] = []
        for number in self._fetches:
            array = box.get(number)
            again = number in fed or number in taken
            found.append((array.copy() if again else array) if array.ndim else array[()])
            taken.add(number)
        return found
