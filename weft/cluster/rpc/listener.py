"""A server of messages."""

from __future__ import annotations

import os
from typing import Any

from weft.cluster.rpc.address import host_and_port
from weft.cluster.rpc.library import module
from weft.cluster.rpc.options import RpcOptions
from weft.cluster.rpc.segment import available
from weft.cluster.rpc.session import Handler, Peer, Reception
from weft.cluster.rpc.socket_server import SocketServer
from weft.host.identity import host_identity


class Listener:
    """Answers messages at an address until `stop`.

    Args:
        address: `host:port`; port 0 lets the system choose, and without a host it is the loopback
            address, which other hosts do not reach.
        handler: called with each message and its sender, by many threads at the same time. It
            returns the answer, or a future of it where that takes long; the future is cancelled
            when its caller cancels or goes away. What it raises is raised at the caller.
        options: security, limits and times.

    Attributes:
        host, port, address: where it listens.

    Raises:
        UnavailableError: it cannot listen there; the message names the port.
    """

    def __init__(self, address: str, handler: Handler, options: RpcOptions | None = None) -> None:
        self._options = options = RpcOptions() if options is None else options
        self._reception = Reception(options)
        self.host, port = host_and_port(address)
        self._local = None
        if options.shared_memory and available():
            self._local = SocketServer(handler, options, self._reception)
        try:
            self._server = module("grpc_server").GrpcServer(
                self.host, port, handler, options, self._reception, self._welcome
            )
        except BaseException:
            self._stop_local()
            raise
        self.port = self._server.port
        self.address = f"{self.host}:{self.port}"

    def _welcome(self, peer: Peer, hello: dict[str, Any]) -> dict[str, Any]:
        """What a client is told: limits, and where it finds shared memory if it is on this host."""
        told: dict[str, Any] = {"most": self._options.max_message_bytes, "process": os.getpid()}
        host = host_identity()
        if self._local is not None and host and hello.get("host") == host:
            told["socket"] = self._local.name
        return told

    def stop(self, grace: float = 0.0) -> None:
        """End it: clients' calls fail, after those over gRPC had `grace` seconds to end."""
        self._server.stop(grace)
        self._stop_local()
        self._reception.close()

    def _stop_local(self) -> None:
        if self._local is not None:
            self._local.stop()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
