"""Where tables are: in this process, or in another one that takes messages."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from weft.errors import AbortedError
from weft.table.group import TableGroup
from weft.table.host import Reply, TableHost, UnknownGroupError

Array = np.ndarray[Any, Any]
Record = tuple[str, Mapping[str, Any]]
Result = Callable[[], Reply]
"""Waits for an answer."""


class Home(abc.ABC):
    """A process that has tables.

    Attributes:
        name: in errors.
    """

    def __init__(self, name: str) -> None:
        self.name: Final = name

    @property
    def near(self) -> TableHost | None:
        """The tables, if they are in this process: calls need no messages."""
        return None

    @abc.abstractmethod
    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Result:
        """Sends a request; what it returns waits for the answer, or raises its error."""

    def close(self) -> None:  # noqa: B027 - most have none
        """Ends the connection, if there is one."""


class HomeHere(Home):
    """The tables of this process.

    Args:
        host: the tables.
        check: raises if they are not served any more.
        name: of the task that serves them.
    """

    def __init__(
        self, host: TableHost, check: Callable[[], object] = lambda: None,
        name: str = "this process",
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._host: Final = host
        self._check = check

    @property
    def near(self) -> TableHost:
        """The tables."""
        self._check()
        return self._host

    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Result:
        """Does it at once."""
        answer: Future[Reply] = Future()
        try:
            answer.set_result(self.near.call(method, head, arrays))
        except Exception as error:
            answer.set_exception(error)
        return answer.result


class Group:
    """A group of tables in a process.

    Args:
        home: the process.
        tables: names and records of options.
    """

    def __init__(self, home: Home, tables: Sequence[Record]) -> None:
        self.home: Final = home
        self._tables = json.loads(json.dumps(list(tables)))
        self._number: int | None = None

    def open(self) -> None:
        """Makes the tables, or finds that they exist with other options."""
        answer = self.home.start("open", {"tables": self._tables}, [])
        self._number = answer().head["group"]

    @property
    def near(self) -> TableGroup | None:
        """The tables, if they are in this process."""
        host = self.home.near
        if host is None:
            return None
        if self._number is None:
            self.open()
        assert self._number is not None
        return host.group(self._number)

    def forget(self) -> None:
        """The process does not know the group any more: the next request opens it anew."""
        self._number = None

    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Answer:
        """Sends a request."""
        if self._number is None:
            self.open()
        return Answer(self, self.home.start(method, {**head, "group": self._number}, arrays))


class Answer:
    """The answer to a request."""

    def __init__(self, group: Group, result: Result) -> None:
        self._group, self._result = group, result

    def result(self) -> Reply:
        """Waits for the answer.

        Raises:
            AbortedError: the process has started anew, and has lost its rows.
            WeftError: what the request raised.
        """
        try:
            return self._result()
        except UnknownGroupError as error:
            self._group.forget()
            raise AbortedError(
                f"tables: {self._group.home.name} has started anew and has lost its rows; load "
                f"them from a checkpoint and go on"
            ) from error
