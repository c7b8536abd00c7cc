"""`torch.backends.mkl`, `torch.backends.cpu` and others: libraries that Weft does not use."""

from __future__ import annotations

from weft.mirror.supplied.same import no

__all__ = ["get_cpu_capability", "is_available"]

is_available = no


def get_cpu_capability() -> str:
    """The instructions that PyTorch's own kernels are chosen by: no special ones."""
    return "DEFAULT"
