"""How sharded modules compute: element types of arithmetic and of traffic; where shards lie."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.dtype import DType

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which element types a unit computes; its shards and their gradients keep their own.

    Args:
        param_dtype: of gathered parameters, and so of the module's arithmetic; half the traffic
            with `bfloat16`.
        reduce_dtype: of gradients while they are reduced; that of gathered parameters if left out.
            Sums are taken in float32 and rounded once in any case.
        output_dtype: floating results of the module's call are converted to it.
        cast_forward_inputs: whether floating arguments of the call are converted to `param_dtype`.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Where shards lie between calls: in the host's memory, as everything."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """The same.

    Args:
        pin_memory: nothing copies from pinned memory here.
    """

    pin_memory: bool = True
