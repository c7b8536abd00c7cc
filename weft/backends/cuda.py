"""CUDA's libraries, which are not there. Their flags can be set, without effect."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["is_built", "matmul"]


@dataclass
class Matmul:
    """Flags of matrix products on a device."""

    allow_tf32: bool = False
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True


matmul = Matmul()


def is_built() -> bool:
    """Whether there is support for devices: there is none."""
    return False
