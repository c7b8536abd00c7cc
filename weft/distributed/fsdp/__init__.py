"""Modules whose parameters, gradients and optimizer state are sharded over ranks (ZeRO)."""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.fsdp.fully_shard import fully_shard as fully_shard
from weft.distributed.fsdp.module import *
from weft.distributed.fsdp.option import *
from weft.distributed.fsdp.policy import *

_exports.gather(globals())

# Above `weft.distributed.checkpoint`, which imports this package.
_exports.lazy(
    globals(),
    {
        "weft.distributed.fsdp": ("wrap",),
        "weft.distributed.fsdp.wrapper": ("FullyShardedDataParallel",),
    },
)
