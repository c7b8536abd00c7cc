"""Checkpoints of all ranks: the names of PyTorch's `torch.distributed.checkpoint`.

See docs/CHECKPOINTS.md.
"""

from __future__ import annotations

from weft.distributed.checkpoint import format_utils, state_dict, stateful
from weft.distributed.checkpoint.api import CheckpointException
from weft.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from weft.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from weft.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from weft.distributed.checkpoint.state_dict_loader import load, load_state_dict
from weft.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from weft.distributed.checkpoint.stateful import Stateful

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "Stateful",
    "TensorStorageMetadata",
    "async_save",
    "format_utils",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
    "state_dict",
    "stateful",
]
