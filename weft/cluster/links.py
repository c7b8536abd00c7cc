"""Connections to the other tasks of a cluster, made on first use and shared by all sessions."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from weft.cluster.rpc import Channel, Message, RpcOptions, connect_patiently
from weft.cluster.spec import ClusterSpec
from weft.errors import DeadlineError, UnavailableError
from weft.ir.device import DeviceName
from weft.runtime.device.base import DeviceAttributes, attributes_of

PATIENT: Final = RpcOptions(connect_timeout=60.0)
"""Tasks of a cluster start at different times: sessions wait for them."""


@dataclass(frozen=True)
class Link:
    """A connection to a task.

    Attributes:
        task: its name.
        channel: where it takes messages.
        incarnation: differs after each start of the task.
        devices: what it has, by full name.
    """

    task: str
    channel: Channel
    incarnation: str
    devices: dict[str, DeviceAttributes]


class Links:
    """The connections of a task to the others.

    Args:
        spec: all tasks.
        own: the name of the task itself.
        options: of the connections.

    Attributes:
        incarnation: differs after each start of the task.
    """

    def __init__(self, spec: ClusterSpec, own: str, options: RpcOptions) -> None:
        self.spec, self.own, self.options = spec, own, options
        self.incarnation = secrets.token_hex(8)
        self.addresses = {str(task): address for task, address in spec}
        self._lock = threading.Lock()
        self._making: dict[str, Future[Link]] = {}
        self._closed = False

    def to(self, task: str, timeout: float | None = None) -> Link:
        """The connection to a task.

        Args:
            task: its name.
            timeout: how long to wait until it answers, in seconds.

        Raises:
            UnavailableError: it does not answer.
            ArgumentError: its cluster spec contradicts this one.
        """
        with self._lock:
            if self._closed:
                raise UnavailableError(f"{self.own} is stopped")
            future = self._making.get(task)
            make = future is None or _has_ended(future)
            if make:
                future = self._making[task] = Future()
        assert future is not None
        if make:
            self._make(task, future, timeout)
        return future.result()

    def alive(self, task: str, timeout: float | None = None) -> Link:
        """The connection to a task that answers now; see `to`."""
        link = self.to(task, timeout)
        try:
            link.channel.call(Message("ping"), timeout or self.options.connect_timeout)
        except (UnavailableError, DeadlineError):
            link.channel.close()
            return self.to(task, timeout)
        return link

    def _make(self, task: str, future: Future[Link], timeout: float | None) -> None:
        try:
            link = self._joined(task, timeout)
        except BaseException as error:
            future.set_exception(error)
            return
        future.set_result(link)
        if self._closed:  # meanwhile
            link.channel.close()

    def _joined(self, task: str, timeout: float | None) -> Link:
        options = self.options
        if timeout:
            options = replace(options, connect_timeout=timeout)
        address = self.addresses[task]
        channel = connect_patiently(address, options, task, self.own, lambda: self._closed)
        try:
            head = {"from": self.own, "to": task, "spec": self.spec.told()}
            answer = channel.call(Message("join", head), self.options.connect_timeout).head
        except BaseException:
            channel.close()
            raise
        return Link(task, channel, answer["incarnation"], attributes_of(answer["devices"]))

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._closed = True
            made, self._making = list(self._making.values()), {}
        for future in made:
            if future.done() and future.exception() is None:
                future.result().channel.close()


def name_of(task: DeviceName) -> str:
    """The name of a task, with its replica."""
    return str(DeviceName(task.job, 0, task.task))


def _has_ended(future: Future[Link]) -> bool:
    """Whether a connection was not made, or is one no more."""
    if not future.done():
        return False
    return future.exception() is not None or future.result().channel.closed
