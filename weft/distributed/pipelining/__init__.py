"""Pipeline parallelism, with PyTorch's names: a model's stages on different ranks.

A batch is split into micro-batches, so that all ranks compute at the same time.
"""

from __future__ import annotations

from weft.distributed.pipelining.schedule import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from weft.distributed.pipelining.split import Pipe, SplitPoint, pipeline
from weft.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "SplitPoint", "pipeline",
]  # fmt: skip
