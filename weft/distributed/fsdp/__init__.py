"""Modules whose parameters, gradients and optimizer state are divided among ranks (ZeRO)."""

from __future__ import annotations

from weft.distributed.fsdp.fully_shard import FSDPModule, fully_shard
from weft.distributed.fsdp.policy import MixedPrecisionPolicy

__all__ = ["FSDPModule", "MixedPrecisionPolicy", "fully_shard"]
