"""Hash tables of rows: native functions that find, make, group, export and drop rows."""

from __future__ import annotations

import platform
import sys

from weft.codegen.procedure import Machine, module
from weft.codegen.table.content import clear, collect, drop, read_rows, write_rows
from weft.codegen.table.grouping import list_members, partition, unique
from weft.codegen.table.search import search
from weft.passes.launch import SYMBOL

ENTRIES = (search, partition, unique, list_members, collect, read_rows, write_rows, drop, clear)
"""The functions in the module's table, in order."""


def source(system: str = sys.platform, processor: str = "") -> str:
    """The module's LLVM IR for an operating system and a processor."""
    addresses = ", ".join(f"ptr @{entry.name}" for entry in ENTRIES)
    table = f"@{SYMBOL} = constant [{len(ENTRIES)} x ptr] [{addresses}]"
    return f"{table}\n{module(Machine(system, processor or platform.machine()), *ENTRIES)}"
