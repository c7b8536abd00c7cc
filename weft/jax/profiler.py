"""`jax.profiler`: contexts without an effect; `WEFT_DEBUG=2` tells kernels' times."""

from __future__ import annotations

from weft.jax.device import named_scope as TraceAnnotation
from weft.jax.device import named_scope as annotate_function
from weft.jax.device import transfer_guard as trace
