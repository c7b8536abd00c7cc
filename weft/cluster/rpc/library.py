"""gRPC is an extra: its modules are loaded when a connection or a server is made."""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

from weft.errors import ConfigError

SETTINGS: Final = {
    "GRPC_VERBOSITY": "ERROR",  # a server that ends is no news for stderr
    # else a fork starts gRPC's threads in the child, and aborts it where there may be no more
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
"""What gRPC reads from the environment when it is loaded, unless it is set."""


def module(name: str) -> Any:
    """A module of this package that needs gRPC.

    Raises:
        ConfigError: gRPC is not installed.
    """
    for key, value in SETTINGS.items():
        os.environ.setdefault(key, value)
    try:
        return importlib.import_module(f"weft.cluster.rpc.{name}")
    except ModuleNotFoundError as error:
        if error.name != "grpc":
            raise
        text = 'expected grpcio to be installed: pip install "weft[cluster]"'
        raise ConfigError(f"cluster: {text}") from None
