"""What both ends of a connection agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.errors import ConfigError, DataError

PROTOCOL: Final = 1
"""The version of the messages; peers of different versions refuse each other."""


@dataclass(frozen=True)
class RpcOptions:
    """Security, limits and times of connections; servers and clients use the same.

    Attributes:
        token: a secret that clients must present; empty: none is asked for.
        certificate, key: files (PEM) of a server's certificate and private key, for TLS; a client
            presents them to servers that verify clients.
        authority: a file (PEM) with the certificate authority that clients trust; with it they use
            TLS.
        server_name: the name in the server's certificate, if it is not the address's host.
        verify_clients: whether a server demands certificates of `authority` from its clients.
        max_message_bytes: the largest message that is sent or accepted.
        connect_timeout: how long `connect` waits for an answer, in seconds.
        deadline: how long a call may take unless it says so itself, in seconds; `None`: no limit.
        patience: a peer that is stopped, or cut off, for so many seconds has failed.
        shared_memory: whether processes of one host use shared memory.

    Raises:
        ConfigError: a value out of range, or a certificate without its key.
    """

    token: str = ""
    certificate: str = ""
    key: str = ""
    authority: str = ""
    server_name: str = ""
    verify_clients: bool = False
    max_message_bytes: int = 1 << 32
    connect_timeout: float = 5.0
    deadline: float | None = None
    patience: float = 2.5
    shared_memory: bool = True

    def __post_init__(self) -> None:
        for name in ("max_message_bytes", "connect_timeout", "patience"):
            if not getattr(self, name) > 0:
                raise ConfigError(
                    f"RpcOptions.{name}: expected a number above 0, got {getattr(self, name)!r}"
                )
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("RpcOptions: expected certificate and key, got only one of them")
        if self.verify_clients and not (self.certificate and self.authority):
            raise ConfigError(
                "RpcOptions.verify_clients: needs certificate, key and authority, of which one is "
                "missing"
            )


def read_file(path: str) -> bytes:
    """The contents of a file that the options name.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise DataError(f"RpcOptions: cannot read {path}: {error.strerror}") from None
