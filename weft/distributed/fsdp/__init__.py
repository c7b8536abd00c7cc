"""Modules whose parameters, gradients and optimizer state are sharded over ranks (ZeRO)."""

from __future__ import annotations

from weft.distributed.fsdp.fully_shard import fully_shard
from weft.distributed.fsdp.module import FSDPModule, UnshardHandle, register_fsdp_forward_method
from weft.distributed.fsdp.policy import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
