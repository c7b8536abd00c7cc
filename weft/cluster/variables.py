"""The variables of all tasks as one mapping, as sessions see them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from weft.cluster.session import ClusterSession
from weft.errors import UnknownKeyError

Array = np.ndarray[Any, Any]


class Variables(MutableMapping[str, Array]):
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
        return self.several([key])[0]

    def __setitem__(self, key: str, value: Array) -> None:
        home = self._home(key) or self._where(key) or next(iter(self._session.devices))
        self._session.ask(home, "set", [key], [np.asarray(value)])

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

    def several(self, keys: Sequence[str]) -> list[Array]:
        """The values of several variables: one message a device, whose values are of one moment.

        Raises:
            UnknownKeyError: one has no value.
        """
        found: dict[str, Array] = {}
        for device, its in self._by_home(keys).items():
            arrays = self._session.ask(device, "get", its)[1]
            found.update(zip(its, arrays, strict=True))
        unknown = next((key for key in keys if key not in found), None)
        if unknown is not None:
            raise UnknownKeyError(f"variable {unknown!r} has no value")
        return [found[key] for key in keys]

    def missing(self, keys: Sequence[str]) -> list[str]:
        """Those of some variables that have no value: one message a device."""
        there: set[str] = set()
        for device, its in self._by_home(keys).items():
            found = self._session.ask(device, "contains", its)[0]["found"]
            there.update(key for key, has in zip(its, found, strict=True) if has)
        return [key for key in keys if key not in there]

    def put(self, values: Mapping[str, Array]) -> None:
        """Give values to several variables: one message a device."""
        first = next(iter(self._session.devices))
        for device, its in self._by_home(list(values), first).items():
            self._session.ask(device, "set", its, [np.asarray(values[key]) for key in its])

    def _by_home(self, keys: Sequence[str], otherwise: str | None = None) -> dict[str, list[str]]:
        """Variables by device; those that nobody has are left out, or are at another one."""
        places: dict[str, list[str]] = {}
        for key in keys:
            home = self._home(key) or self._where(key) or otherwise
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
