"""The target machine: vector width, registers, features, caches."""

from __future__ import annotations

import contextlib
import functools
import platform
from dataclasses import dataclass, replace
from typing import Final

from weft import config
from weft.codegen import llvm
from weft.errors import ConfigError


@dataclass(frozen=True)
class Target:
    """One instruction set. Widths and features come from this table alone, never from guesses."""

    cpu: str  # LLVM's name
    features: str  # LLVM's feature string
    vector_bits: int
    registers: int  # vector registers
    masked: bool  # masked loads and stores of every element size, at no extra cost
    bf16: bool  # AVX512_BF16 dot products
    l1: int = 32 * 1024  # bytes, data, per core
    l2: int = 1024 * 1024
    past_caches: int = 0  # bytes from which matmul results are stored non-temporally; 0: never
    winograd: str = "auto"  # the knob: allowed convolution algorithms
    processor: str = ""  # as `platform.machine` says it; this machine's if it is not said

    def lanes(self, size: int) -> int:
        """Elements of `size` bytes in one vector."""
        return self.vector_bits // 8 // size


# x86-64 psABI levels. A level implies its instructions, so `features` stays empty.
_LEVELS: Final = {
    "x86-64-v2": Target("x86-64-v2", "", 128, 16, False, False, processor="x86_64"),
    "x86-64-v3": Target("x86-64-v3", "", 256, 16, False, False, processor="x86_64"),
    "x86-64-v4": Target("x86-64-v4", "", 512, 32, True, False, processor="x86_64"),
}
PORTABLE: Final = {
    **_LEVELS,
    "x86-64-v4-bf16": replace(_LEVELS["x86-64-v4"], features="+avx512bf16", bf16=True),
    "aarch64": Target("generic", "+neon", 128, 32, False, False, processor="aarch64"),
}
"""Targets that many machines share, by name; of each, kernels are made once."""
_FLAGS: Final = {
    "x86-64-v2": "cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
    "x86-64-v4-bf16": "avx512_bf16",
}
"""What Linux calls the instructions that a level adds to the one before."""


_PAST_CACHES = {"znver4": 24 * 1024 * 1024}
"""For cores with enough non-temporal stores in flight to beat cached ones, which read each line
first: 53 GB/s on two cores of a Zen 4, not 28 (results of three quarters of its L3).
"""


@functools.cache
def _native() -> Target:
    cpu, has = llvm.host()
    features = ",".join(("+" if on else "-") + name for name, on in sorted(has.items()))
    if all(has.get(f, False) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq")):
        past_caches = _PAST_CACHES.get(cpu, 0)
        pairs = has.get("avx512bf16", False)
        return Target(cpu, features, 512, 32, True, pairs, past_caches=past_caches)
    if has.get("avx2", False) and has.get("fma", False):
        return Target(cpu, features, 256, 16, False, False)
    if has.get("neon", False):
        return Target(cpu, features, 128, 32, False, False)
    return Target(cpu, features, 128, 16, False, False)


def current() -> Target:
    """The target that `WEFT_TARGET` selects.

    Raises:
        ConfigError: this machine cannot run it.
    """
    name = str(config.get("target"))
    winograd = str(config.get("winograd"))
    if name == "native":
        return replace(_native(), winograd=winograd)
    target = _LEVELS[name]
    if target.vector_bits > _native().vector_bits:
        raise ConfigError(
            f"WEFT_TARGET={name}: this machine ({_native().cpu}) lacks the instructions"
        )
    return replace(target, winograd=winograd)


def portable() -> Target:
    """The target of library kernels: one that many machines share, with vectors as in `current`.

    So kernels for it can be made before a machine is known, and give the same bits as those for
    this very machine.

    Raises:
        ConfigError: as `current`.
    """
    return _portable(str(config.get("target")), str(config.get("winograd")))


@functools.cache
def _portable(name: str, winograd: str) -> Target:
    host = _level()
    found = host if name == "native" else PORTABLE[name]
    if host is None or found is None or found.vector_bits > host.vector_bits:
        return current()
    return replace(found, winograd=winograd)


@functools.cache
def _level() -> Target | None:
    """The best portable target that this machine runs; LLVM, which knows, takes 50 ms to load."""
    if platform.machine() == "aarch64":
        return PORTABLE["aarch64"]
    found = None
    has = _flags()
    for name, flags in _FLAGS.items():
        if not has.issuperset(flags.split()):
            break
        found = PORTABLE[name]
    return found


def _flags() -> frozenset[str]:
    """The names of the first processor's instructions, as Linux tells them."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    return frozenset()
