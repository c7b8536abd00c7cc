"""The same calls in each tier, and whether all give the same bits.

with in_tier(STITCHED):
    one = results_of(op, cases)
with in_tier(COMPILED, threads=2):
    other = results_of(op, cases)
assert_same(one, other)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.eager.record.memory import memory_pool
from weft.eager.record.recognition import program_cache
from weft.eager.record.run import stitched_tier, tier_choice
from weft.eager.tensor.dispatch import record, wrap
from weft.errors import MismatchError
from weft.ir.dtype import as_dtype
from weft.ops.declaration import NO_GRADIENT, Case, Op
from weft.ops.declaration.numeric import draw

Array = np.ndarray[Any, Any]
STITCHED, COMPILED, BOTH = "stitched", "compiled", "both"
TIERS = ((STITCHED, 1), (STITCHED, 2), (COMPILED, 1), (COMPILED, 2))
"""Tiers and threads that give the same bits; the first is what others are compared with."""


@contextlib.contextmanager
def in_tier(name: str, threads: int = 1) -> Iterator[None]:
    """All structures are new, and run on library kernels, or compiled, or first so, then so.

    Memory that is not written yet holds no numbers.
    """
    with pytest.MonkeyPatch.context() as patch, config.override(threads=threads):
        if name != BOTH:
            patch.setattr(stitched_tier, "STITCHED_RUNS", 1 << 30)
            patch.setattr(stitched_tier, "STITCHED_RUNS_OF_MANY", 1 << 30)
        empty = memory_pool.empty
        patch.setattr(memory_pool, "empty", lambda *kind: _unwritten(empty(*kind)))
        for cache in (tier_choice._tiers, stitched_tier._shapes, program_cache._met):
            cache.clear()
        with config.override(compile=name == COMPILED):
            yield
            wf.synchronize()


def _unwritten(array: Array) -> Array:
    if array.flags.c_contiguous:
        array.reshape(-1).view(np.uint8).fill(0xFF)
    return array


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
        if pairs:
            given = [y for y, _ in pairs], taken, [g for _, g in pairs]
            ys += [g for g in wf.autograd.grad(*given, allow_unused=True) if g is not None]
        found.append(ys)
    return [[y.detach().numpy().copy() for y in ys] for ys in found]


def _cotangent(y: Any, number: int) -> Any:
    return wf.tensor(draw(tuple(y.shape), as_dtype(y.dtype), seed=number))


def bits(array: Array) -> bytes:
    """What two equal results have in common: all bits, but those that tell one NaN from another."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.tobytes()


def assert_same(one: Sequence[Sequence[Array]], other: Sequence[Sequence[Array]]) -> None:
    """Two lists of results have the same bits.

    Raises:
        MismatchError: they do not; tells where.
    """
    for n, (xs, ys) in enumerate(zip(one, other, strict=True)):
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            if x.shape != y.shape or bits(x) != bits(y):
                apart = "" if x.shape != y.shape else f" by up to {np.max(np.abs(x - y))}"
                raise MismatchError(f"result {i} of {n}, {x.dtype}{x.shape}: differs{apart}")


def single(op: Op) -> list[Case]:
    """The cases of an operation without floating-point numbers other than float32."""
    wide = {"float64", "float16", "bfloat16", "complex64", "complex128"}
    return [case for case in op.cases() if not wide & {a.dtype.name for a in case.inputs}]
