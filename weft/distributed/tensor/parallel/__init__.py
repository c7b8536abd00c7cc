"""Tensor parallelism: `parallelize_module` and the styles of its plans."""

from __future__ import annotations

from weft.distributed.tensor.parallel.input_output import (
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
)
from weft.distributed.tensor.parallel.parallelize_module import parallelize_module
from weft.distributed.tensor.parallel.style import ParallelStyle
from weft.distributed.tensor.parallel.weight import (
    ColumnwiseParallel,
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColumnwiseParallel",
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
]
