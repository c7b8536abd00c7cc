"""gRPC is an extra: its modules are loaded when a connection or a server is made."""

from __future__ import annotations

import importlib
from typing import Any

from weft.errors import ConfigError


def module(name: str) -> Any:
    """A module of this package that needs gRPC.

    Raises:
        ConfigError: gRPC is not installed.
    """
    try:
        return importlib.import_module(f"weft.cluster.rpc.{name}")
    except ModuleNotFoundError as error:
        if error.name != "grpc":
            raise
        text = 'expected grpcio to be installed: pip install "weft[cluster]"'
        raise ConfigError(f"cluster: {text}") from None
