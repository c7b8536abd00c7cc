"""Options of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["ConfigProto", "GPUOptions"]


class GPUOptions:
    """Accepted for old programs; there is no GPU."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.allow_growth = bool(options.get("allow_growth", False))
        self.per_process_gpu_memory_fraction = options.get("per_process_gpu_memory_fraction", 1.0)


class ConfigProto:
    """Options of a session. `intra_op_parallelism_threads`: threads, 256 at most; 0 is all."""

    def __init__(
        self, intra_op_parallelism_threads: int = 0, inter_op_parallelism_threads: int = 0,
        allow_soft_placement: bool = False, log_device_placement: bool = False,
        device_count: Mapping[str, int] | None = None, gpu_options: GPUOptions | None = None,
        graph_options: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        self.intra_op_parallelism_threads = intra_op_parallelism_threads
        self.inter_op_parallelism_threads = inter_op_parallelism_threads
        self.allow_soft_placement = allow_soft_placement
        self.log_device_placement = log_device_placement
        self.device_count = dict(device_count or {})
        self.gpu_options = gpu_options or GPUOptions()
        self.graph_options = graph_options
        self.others = others
