"""`torch.backends.mkl` and others: libraries that Weft does not use."""

from __future__ import annotations

from weft.mirror.supplied.same import no

__all__ = ["is_available"]

is_available = no
