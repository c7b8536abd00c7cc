"""The variables of several devices of a process, each at its home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final

import numpy as np

from weft.runtime.device.base import HostArray
from weft.runtime.flight import new_lock
from weft.runtime.memory.state import State


class DeviceStates(MutableMapping[str, HostArray]):
    """The variables of several devices, each at its home.

    Args:
        states: the variables of each device, by its full name.
        default: the home of what is not told to be elsewhere.

    Attributes:
        homes: the device of each variable, by key, as far as it is told.
        lock: held while a step runs.
    """

    def __init__(self, states: Mapping[str, State], default: str) -> None:
        self.lock: Final = new_lock()
        self.states: Final = states
        self.homes: dict[str, str] = {}
        self._default: Final = default

    def tell(self, homes: Mapping[str, str]) -> None:
        """Tells where variables are; what has a value elsewhere moves there. The first word counts.

        Args:
            homes: devices by key.
        """
        with self.lock:
            for key, home in homes.items():
                if key in self.homes:
                    continue
                before = self.home(key)
                self.homes[key] = home
                if before != home and key in self.states[before]:
                    self.states[home][key] = self.states[before].pop(key)

    def home(self, key: str) -> str:
        """The device of a variable."""
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

    def set_zeros(self, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Sets a variable to zeros at its home."""
        self._at(key).set_zeros(key, shape, dtype)

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
