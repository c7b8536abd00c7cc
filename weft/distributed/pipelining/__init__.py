"""A model cut into stages, one after another on the ranks: PyTorch's names.

A batch goes through in micro-batches, so that all ranks have something to do.
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
