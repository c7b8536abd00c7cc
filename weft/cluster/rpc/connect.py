"""Connections to servers."""

from __future__ import annotations

from weft.cluster.rpc.address import host_and_port
from weft.cluster.rpc.channel import Channel
from weft.cluster.rpc.grpc_client import GrpcChannel
from weft.cluster.rpc.options import RpcOptions


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
    return GrpcChannel(f"{host}:{port}", options, name, own_name)
