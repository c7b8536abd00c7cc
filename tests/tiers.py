"""The same calls in each tier, and whether all give the same bits.

    with in_tier(STITCHED):
        one = bits_of(op, cases)
    with in_tier(COMPILED):
        other = bits_of(op, cases)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.eager.record import prepared_program, program_cache, tier
from weft.eager.tensor.dispatch import record, wrap
from weft.ir.dtype import as_dtype, float32
from weft.ops.declaration import NO_GRADIENT, Case, Op
from weft.ops.declaration.numeric import draw

Array = np.ndarray[Any, Any]
STITCHED, COMPILED = "stitched", "compiled"


@contextlib.contextmanager
def in_tier(name: str, threads: int = 1) -> Iterator[None]:
    """All structures run on library kernels, or each is compiled before its first run."""
    with config.override(compile=name == COMPILED, threads=threads), pytest.MonkeyPatch.context() as m:
        m.setattr(tier, "STITCHED_RUNS", 1 << 30)
        m.setattr(tier, "STITCHED_RUNS_OF_MANY", 1 << 30)
        for cache in (tier._runs, prepared_program._programs, program_cache._met):
            cache.clear()
        yield


def results_of(op: Op, cases: Sequence[Case]) -> list[list[Array]]:
    """Outputs and gradients of each case, all computed as one structure."""
    found: list[list[Any]] = []
    for case in cases:
        xs = [wf.tensor(a) for a in case.inputs]
        taken = [x for x in xs if x.dtype.is_floating and op.vjp is not NO_GRADIENT]
        for x in taken:
            x.requires_grad_()
        ys = [wrap(y, None) for y in record(op, [x.lazy for x in xs], dict(case.attrs))]
        pairs = [(y, _cotangent(y, i)) for i, y in enumerate(ys) if y.requires_grad]
        if pairs and taken:
            gs = wf.autograd.grad([y for y, _ in pairs], taken, [g for _, g in pairs], allow_unused=True)
            ys += [g for g in gs if g is not None]
        found.append(ys)
    return [[y.detach().numpy().copy() for y in ys] for ys in found]


def _cotangent(y: Any, i: int) -> Any:
    return wf.tensor(draw(tuple(y.shape), as_dtype(y.dtype), seed=i))


def bits(array: Array) -> bytes:
    """What two equal results have in common: all bits, but those that tell one NaN from another."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.tobytes()


def single(op: Op) -> list[Case]:
    """The cases of an operation in float32 alone, or without any floating number."""
    kinds = {"float32", "int32", "int64", "bool", "uint32", "uint8"}
    return [c for c in op.cases() if {a.dtype.name for a in c.inputs} <= kinds]
