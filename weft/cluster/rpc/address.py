"""Addresses of servers."""

from __future__ import annotations

from weft.errors import ArgumentError

LOOPBACK = "127.0.0.1"


def host_and_port(address: str) -> tuple[str, int]:
    """The host and port of `host:port`, `[::1]:port`, or `:port`, which is the loopback's.

    Raises:
        ArgumentError: it is none of these.

    >>> host_and_port(":2222")
    ('127.0.0.1', 2222)
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ArgumentError(f"address: expected host:port, as in 127.0.0.1:2222, got {address!r}")
    return host or LOOPBACK, int(port)
