"""Policies of sharded modules: element types, and where shards are stored."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.dtype import DType

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The element types in which a unit computes; its shards and their gradients keep their own.

    Args:
        param_dtype: of gathered parameters, and so of the module's arithmetic; `bfloat16` halves
            the communication.
        reduce_dtype: of gradients while they are reduced; by default `param_dtype`. In any case,
            sums are taken in float32 and rounded once.
        output_dtype: floating results of the module's call are converted to it.
        cast_forward_inputs: whether floating arguments of the call are converted to `param_dtype`.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Where shards are stored between calls: in the host's memory."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Shards in the host's memory, where they are anyway.

    Args:
        pin_memory: has no effect.
    """

    pin_memory: bool = True
