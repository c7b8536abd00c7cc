"""The file system of a path, for programs that write beside a run's files."""

from __future__ import annotations

import importlib
from typing import Any

from weft.errors import ArgumentError

__all__ = ["get_filesystem"]


def get_filesystem(path: Any, **kwargs: Any) -> Any:
    """The file system of fsspec for a path or an address.

    Args:
        kwargs: options of the file system.

    Raises:
        ArgumentError: fsspec is not installed.
    """
    try:
        core: Any = importlib.import_module("fsspec.core")
    except ImportError:
        raise ArgumentError.here("get_filesystem: expected fsspec: pip install fsspec") from None
    return core.url_to_fs(str(path), **kwargs)[0]
