"""A model cut into stages, one after another on the ranks: PyTorch's names.

A batch goes through in micro-batches, so that all ranks have something to do.
"""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.pipelining.schedule import *
from weft.distributed.pipelining.split import *
from weft.distributed.pipelining.stage import PipelineStage as PipelineStage

_exports.gather(globals())
