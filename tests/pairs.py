"""AVX512_BF16 on machines without it: its instruction, emulated by others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from weft import config
from weft.codegen import microkernel, target
from weft.codegen.builder import Builder, Reg, constant
from weft.codegen.loop.convert import like


def emulated(b: Builder, x: Reg, y: Reg, z: Reg) -> Reg:
    """What vdpbf16ps computes, by shifts and two multiply-adds."""
    for low in (True, False):
        parts: list[Reg] = []
        for pair in (x, y):
            words = like(pair, "i32")
            bits = b.emit(words, f"bitcast {pair} to {words}")
            by = constant(16 if low else -65536, words)
            half = b.binary("shl" if low else "and", bits, by)
            parts.append(b.emit(pair.type, f"bitcast {half} to {pair.type}"))
        z = microkernel.fma(b, parts[0], parts[1], z)
    return z


@contextlib.contextmanager
def compiling_for(name: str) -> Iterator[None]:
    """Compile for a target; `pairs` is AVX-512 with AVX512_BF16, emulated."""
    if name != "pairs":
        with config.override(target=name):
            yield
        return
    with config.override(target="x86-64-v4"):
        paired = replace(target.current(), bf16=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "_native", lambda: paired)
        patch.setattr(microkernel, "multiply_pairs", emulated)
        yield
