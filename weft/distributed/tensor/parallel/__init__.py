"""Tensor parallelism: `parallelize_module` and the styles of its plans."""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.tensor.parallel.input_output import *
from weft.distributed.tensor.parallel.parallelize_module import *
from weft.distributed.tensor.parallel.style import ParallelStyle as ParallelStyle
from weft.distributed.tensor.parallel.weight import *

_exports.gather(globals())
