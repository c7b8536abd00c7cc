"""Mixed precision on CUDA devices, of which there are none: switched off, as in PyTorch.

>>> import weft as wf
>>> wf.cuda.amp.GradScaler(enabled=False).is_enabled()
False
"""

from __future__ import annotations

from typing import Any

from weft import amp
from weft.eager.record.pending.mode import Setting

__all__ = ["GradScaler", "autocast"]


class GradScaler(amp.GradScaler):
    """A scaler that does nothing; it warns if it is enabled.

    Args:
        init_scale, growth_factor, backoff_factor, growth_interval, enabled: as for
            `weft.amp.GradScaler`.
    """

    def __init__(
        self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> Setting:
    """A context manager that changes nothing; it warns if it is enabled."""
    return amp.autocast("cuda", dtype, enabled, cache_enabled)
