"""A session whose master is in another process."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.cluster.links import PATIENT
from weft.cluster.remote_function import RemoteFunction
from weft.cluster.rpc import Channel, Message, RpcOptions, connect, connect_patiently
from weft.cluster.session import ClusterSession
from weft.cluster.waiting import Pending, answered
from weft.cluster.wire import request_head
from weft.cluster.worker.program import digests_of, packed
from weft.cluster.worker.store import told
from weft.errors import ArgumentError, ClosedError, DeadlineError, UnavailableError
from weft.ops.resource.spec import ResourceSpec
from weft.passes.step import Request
from weft.resource.base import Cancellation
from weft.runtime.device.base import attributes_of

Array = np.ndarray[Any, Any]
SCHEME: Final = "grpc://"


def address_of(target: str) -> str:
    """The address in a target.

    Raises:
        ArgumentError: it is none of the form `grpc://host:port`.
    """
    if not target.startswith(SCHEME):
        raise ArgumentError(
            f"session: expected a target such as {SCHEME}localhost:2222, or none, got {target!r}"
        )
    return target.removeprefix(SCHEME)


class ClientSession(ClusterSession):
    """Runs requests through a master in another process.

    Args:
        target: of the master's server.
        filters, threads, timeout: as in `Master.open`.
        options: of the connection.

    Raises:
        UnavailableError: the server, or a task that it needs, does not answer.
    """

    def __init__(
        self, target: str, filters: Sequence[str] = (), threads: int = 0,
        timeout: float | None = None, options: RpcOptions | None = None,
    ) -> None:  # fmt: skip
        self._channel: Final[Channel] = connect_patiently(
            address_of(target), options or PATIENT, target
        )
        self._closed = False
        self._pending = Pending()
        self._sent: set[str] = set()
        head = {"filters": list(filters), "threads": threads, "timeout": timeout}
        try:
            answer = self._channel.call(Message("client open", head)).head
        except BaseException:
            self._channel.close()
            raise
        self._name: Final[str] = answer["session"]
        self.task, self.devices = answer["task"], attributes_of(answer["devices"])

    def function(self, request: Request) -> RemoteFunction:
        """A part of a graph, which is sent to the master."""
        aside: list[Array] = []
        head: dict[str, Any] = {"request": request_head(request, aside)}
        head["constants"], arrays = packed(aside, self._sent)
        number = self._call("function", head, arrays).head["function"]
        self._sent |= digests_of(head["constants"])
        return RemoteFunction(self._send, {"session": self._name, "function": number})

    def ask(
        self, device: str, do: str, keys: Sequence[str] = (), arrays: Sequence[Array] = ()
    ) -> tuple[Mapping[str, Any], Sequence[Array]]:
        """Ask a device about its variables."""
        answer = self._call("state", {"device": device, "do": do, "keys": list(keys)}, arrays)
        return answer.head, answer.arrays

    def call(
        self, device: str, spec: ResourceSpec, method: str, options: Mapping[str, Any],
        inputs: Sequence[Array], cancel: Cancellation,
    ) -> Sequence[Array]:  # fmt: skip
        """Call a method of a resource."""
        self._check()
        head = {"session": self._name, "device": device, **told(spec, method, options)}
        message = Message("client call", head, inputs)
        with self._pending:
            return answered(self._channel, message, cancel, "client give up").arrays

    def close(self) -> None:
        """Close the session of the master."""
        if not self._closed:
            self._closed = True
            self._pending.close()
            with self._channel, contextlib.suppress(UnavailableError, DeadlineError):
                self._channel.call(Message("client close", {"session": self._name}), 5.0)

    def _call(
        self, kind: str, head: dict[str, Any], arrays: Sequence[Array] = ()
    ) -> Message:  # fmt: skip
        return self._send(Message(f"client {kind}", {"session": self._name, **head}, arrays))

    def _send(self, message: Message) -> Message:
        self._check()
        return self._channel.call(message)

    def _check(self) -> None:
        if self._closed:
            raise ClosedError("session: expected an open session, got a closed one")


def reset(target: str, containers: Collection[str] = (), options: RpcOptions | None = None) -> None:
    """Close the sessions of a server's master, and forget the contents of containers.

    Args:
        target: of the server.
        containers: their names; all containers of all tasks if there is none.
        options: of the connection.
    """
    with connect(address_of(target), options, target) as channel:
        channel.call(Message("client reset", {"containers": list(containers)}))
