"""Where tables are: in this process, or in another one that takes messages."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from weft.table.host import Reply, TableHost, UnknownGroupError

Array = np.ndarray[Any, Any]
Record = tuple[str, Mapping[str, Any]]


class Home(abc.ABC):
    """A process that has tables."""

    @abc.abstractmethod
    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Future[Reply]:
        """Sends a request; the answer, or its error."""


class HomeHere(Home):
    """The tables of this process."""

    def __init__(self, host: TableHost) -> None:
        self.host: Final = host

    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Future[Reply]:
        """Does it at once."""
        answer: Future[Reply] = Future()
        try:
            answer.set_result(self.host.call(method, head, arrays))
        except Exception as error:
            answer.set_exception(error)
        return answer


class Group:
    """A group of tables in a process, opened anew if the process has started anew."""

    def __init__(self, home: Home, tables: Sequence[Record]) -> None:
        self._home = home
        self._tables = json.loads(json.dumps(list(tables)))
        self._number: int | None = None

    def open(self) -> None:
        """Makes the tables, or finds that they exist with other options."""
        answer = self._home.start("open", {"tables": self._tables}, [])
        self._number = answer.result().head["group"]

    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Answer:
        """Sends a request."""
        if self._number is None:
            self.open()
        return Answer(self, method, head, arrays)

    def send(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Future[Reply]:
        """Sends a request of this group."""
        return self._home.start(method, {**head, "group": self._number}, arrays)


class Answer:
    """The answer to a request; a process that has lost the group gets both once more."""

    def __init__(
        self, group: Group, method: str, head: Mapping[str, Any], arrays: list[Array]
    ) -> None:
        self._group = group
        self._request = method, head, arrays
        self._future = group.send(*self._request)

    def result(self) -> Reply:
        """Waits for the answer.

        Raises:
            BaseException: the request's error.
        """
        try:
            return self._future.result()
        except UnknownGroupError:
            self._group.open()
            return self._group.send(*self._request).result()
