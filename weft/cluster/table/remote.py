"""Tables in another process: requests and answers as messages."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from weft.cluster.rpc import Channel, Message, RpcOptions, connect, travels
from weft.table import resource as resource  # declares what graphs call, on each server
from weft.table.home import Home
from weft.table.host import Reply, TableHost, UnknownGroupError

Array = np.ndarray[Any, Any]
KIND: Final = "tables"
"""Of the messages."""
travels(UnknownGroupError)


class RemoteHome(Home):
    """The tables of the server at an address; it is connected to anew after a failure.

    Args:
        address: `host:port`.
        options: of the connection.
        name: of the task there.
    """

    def __init__(self, address: str, options: RpcOptions, name: str = "") -> None:
        super().__init__(name or address)
        self._address, self._options = address, options
        self._channel: Channel = connect(address, options, name)

    def start(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Future[Reply]:
        """Sends a message.

        Raises:
            UnavailableError: the server does not answer.
        """
        if self._channel.closed:
            self._channel = connect(self._address, self._options, self.name)
        sent = self._channel.start(Message(KIND, {**head, "method": method}, arrays))
        answer: Future[Reply] = Future()
        sent.add_done_callback(lambda done: _pass_on(done, answer))
        return answer

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()


def _pass_on(done: Future[Message], answer: Future[Reply]) -> None:
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        message = done.result()
        answer.set_result(Reply(message.head, list(message.arrays)))


def answered(host: TableHost, message: Message) -> Message:
    """A server's answer to a request."""
    arrays = [np.ascontiguousarray(x) for x in message.arrays]
    reply = host.call(message.head["method"], message.head, arrays)
    return Message(KIND, reply.head, reply.arrays)
