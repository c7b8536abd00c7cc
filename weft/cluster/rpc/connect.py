"""Connections to servers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weft.cluster.rpc.address import host_and_port
from weft.cluster.rpc.channel import Channel
from weft.cluster.rpc.library import module
from weft.cluster.rpc.options import RpcOptions
from weft.cluster.rpc.socket_client import SocketChannel
from weft.errors import UnavailableError

if TYPE_CHECKING:
    from weft.cluster.rpc.grpc_client import GrpcChannel

WARN_SECONDS: Final = 10.0
_log: Final = logging.getLogger(__name__)


def connect(
    address: str, options: RpcOptions | None = None, name: str = "", own_name: str = ""
) -> Channel:
    """A channel to the server at an address.

    Args:
        address: `host:port`.
        options: security, limits and times.
        name: of the task there, such as `/job:ps/task:1`, for errors.
        own_name: of this task, which the server is told.

    Raises:
        UnavailableError: no answer for `connect_timeout` seconds; it names the task.
        DeniedError: the server has another version, or demands a token that the options lack.
    """
    options = RpcOptions() if options is None else options
    host, port = host_and_port(address)
    channel: GrpcChannel = module("grpc_client").GrpcChannel(
        f"{host}:{port}", options, name, own_name
    )
    return _moved(channel) if options.shared_memory else channel


def connect_patiently(
    address: str, options: RpcOptions, name: str, own_name: str = "",
    given_up: Callable[[], bool] = lambda: False,
) -> Channel:  # fmt: skip
    """A channel as of `connect`, to a server that may not have started yet.

    A server that will start and one that never will look the same from here, so who waits long
    reads for whom, and why, every ten seconds.

    Args:
        address, options, name, own_name: as of `connect`.
        given_up: whether nobody waits any more.

    Raises:
        UnavailableError: no answer for `connect_timeout` seconds.
    """
    whole = options.connect_timeout
    until = time.monotonic() + whole
    while True:
        left = max(round(until - time.monotonic(), 3), 0.01)
        part = replace(options, connect_timeout=min(left, WARN_SECONDS))
        try:
            return connect(address, part, name, own_name)
        except UnavailableError as error:
            if given_up() or left <= WARN_SECONDS:
                text = str(error).replace(f"after {left:g} s", f"after {whole:g} s")
                raise UnavailableError(text) from None
            _log.warning("%s still waits for %s", own_name or "a session", error)


def _moved(channel: GrpcChannel) -> Channel:
    """A channel through shared memory in place of this one, if the server is on this host."""
    welcome = channel.welcome
    if "socket" not in welcome:
        return channel
    try:
        moved = SocketChannel(
            channel.name, channel.address, channel.options, str(welcome["socket"]),
            bytes.fromhex(str(welcome["secret"])), int(welcome["process"]), channel.most_bytes,
        )  # fmt: skip
    except OSError:  # the host is the same, but a socket cannot be reached
        return channel
    except BaseException:
        channel.close()
        raise
    channel.close()
    return moved
