"""The native function that runs every program, written once for each machine."""

from __future__ import annotations

import functools
import platform
import sys

from weft.codegen.driver.formula import evaluate
from weft.codegen.driver.message import exchange, meet, stream
from weft.codegen.driver.program import flush, land, run, stop
from weft.codegen.driver.recording import record
from weft.codegen.driver.stitch import stitch
from weft.codegen.driver.work import worker
from weft.codegen.procedure import Machine, module
from weft.passes.launch import SYMBOL

ENTRIES = (run, worker, stop, land, exchange, meet, stream, flush, record, evaluate, stitch)
"""The functions in the driver's table, in order."""


@functools.cache
def source(system: str = sys.platform, processor: str = "") -> str:
    """The driver's LLVM IR for an operating system and a processor."""
    name = (processor or platform.machine()).lower()
    machine = Machine(system, {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name))
    addresses = ", ".join(f"ptr @{entry.name}" for entry in ENTRIES)
    table = f"@{SYMBOL} = constant [{len(ENTRIES)} x ptr] [{addresses}]"
    return f"{table}\n{module(machine, *ENTRIES)}"
