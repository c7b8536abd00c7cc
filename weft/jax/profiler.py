"""`jax.profiler`: contexts without an effect; `WEFT_DEBUG=2` tells kernels' times."""

from __future__ import annotations
