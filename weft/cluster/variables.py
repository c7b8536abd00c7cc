"""The variables of all tasks as one mapping, as sessions see them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from weft.cluster.copies import own
from weft.cluster.session import ClusterSession
from weft.errors import UnknownKeyError
from weft.runtime.memory.distant import Distant

Array = np.ndarray[Any, Any]


class Variables(Distant):
    """Variables by key, wherever they are. Reading and writing an item is a message to its task.

    Args:
        session: over the tasks.
        home: the full name of the device of a variable; of one that is not known, `None`.

    Attributes:
        lock: orders what this process does; other clients may change values meanwhile.
    """

    def __init__(
        self, session: ClusterSession, home: Callable[[str], str | None] = lambda key: None
    ) -> None:
        self._session, self._home = session, home
        self._found: dict[str, str] = {}  # homes of variables that no graph tells
        self.lock = threading.RLock()

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._where(key) is not None

    def __getitem__(self, key: str) -> Array:
        found = self.several([key])
        if key not in found:
            raise UnknownKeyError(f"variable {key!r} has no value")
        return found[key]

    def __setitem__(self, key: str, value: Array) -> None:
        self.put({key: value})

    def __delitem__(self, key: str) -> None:
        home = self._where(key)
        if home is None:
            raise UnknownKeyError(f"variable {key!r} has no value")
        self._session.ask(home, "delete", [key])

    def __iter__(self) -> Iterator[str]:
        for device in self._session.devices:
            yield from self._session.ask(device, "keys")[0]["keys"]

    def __len__(self) -> int:
        return len(list(iter(self)))

    def several(self, keys: Iterable[str]) -> dict[str, Array]:
        """The values of those of these variables that have one.

        Each device is asked once; its values are of one moment.
        """
        found: dict[str, Array] = {}
        for device, its in self._by_device(keys).items():
            head, arrays = self._session.ask(device, "get", its)
            found.update(zip(head["found"], map(own, arrays), strict=True))
        return {key: found[key] for key in keys if key in found}

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of these variables that have no value, with one message a device."""
        asked = list(keys)
        there: set[str] = set()
        for device, its in self._by_device(asked).items():
            found = self._session.ask(device, "contains", its)[0]["found"]
            there.update(key for key, has in zip(its, found, strict=True) if has)
        return [key for key in asked if key not in there]

    def put(self, values: Mapping[str, Array]) -> None:
        """Set variables, with one message a device."""
        default = next(iter(self._session.devices))
        places = self._by_device(values)
        known = {key for its in places.values() for key in its}
        places.setdefault(default, []).extend([key for key in values if key not in known])
        for device, its in places.items():
            if its:
                arrays = [np.asarray(values[key]) for key in its]
                self._session.ask(device, "set", its, arrays)

    def _by_device(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """The keys of each device; those that no graph tells and that have no value are missing."""
        places: dict[str, list[str]] = {}
        for key in keys:
            home = self._home(key) or self._where(key)
            if home is not None:
                places.setdefault(home, []).append(key)
        return places

    def memory(self, key: str) -> Array:
        """A copy of a value: memory of other tasks is not here."""
        return self[key]

    def _where(self, key: str) -> str | None:
        """The device that has a value for a key."""
        likely = self._home(key) or self._found.get(key)
        if likely is not None:
            return likely if self._has(likely, key) else None
        for device in self._session.devices:
            if self._has(device, key):
                self._found[key] = device
                return device
        return None

    def _has(self, device: str, key: str) -> bool:
        return self._session.ask(device, "contains", [key])[0]["found"][0]
