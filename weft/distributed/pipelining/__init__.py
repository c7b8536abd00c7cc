"""Pipeline parallelism, with PyTorch's names: a model's stages on different ranks.

A batch is split into micro-batches, so that all ranks compute at the same time.
"""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.pipelining.schedule import *
from weft.distributed.pipelining.split import *
from weft.distributed.pipelining.stage import PipelineStage as PipelineStage

_exports.gather(globals())
