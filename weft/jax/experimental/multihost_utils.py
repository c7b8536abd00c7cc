"""`jax.experimental.multihost_utils`, for the one process that there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.jax.tree_util import tree_map

__all__ = ["broadcast_one_to_all", "process_allgather", "sync_global_devices"]


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """NumPy's arrays of all processes, concatenated if `tiled`, or else stacked."""
    return tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The source's values, as NumPy's arrays.

    Raises:
        ValueError: `is_source` is false: no process has the values.
    """
    if is_source is not None and not is_source:
        raise ValueError("broadcast_one_to_all: the only process is not the source")
    return tree_map(np.asarray, in_tree)


def sync_global_devices(name: str) -> None:
    """Nothing: there is no other process to wait for."""
