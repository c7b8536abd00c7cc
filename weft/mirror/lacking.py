"""Names that other libraries have and Weft lacks: a program may import them and not use them.

Imports at a program's top, of what a later option would use, are given; the name raises where it
is used. Where the program asks, by `try` and `except ImportError`, it is told that there is none.
"""

from __future__ import annotations

import dis
import gzip
from functools import cache
from importlib.resources import files
from types import CodeType, FrameType
from typing import Any, Final

from weft.mirror import table

_CAUGHT: Final = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_NOT_ASKING: Final = ("importlib", "multiprocessing", "runpy", "weft")
"""Packages that catch what a program raises, and do not ask whether there is a name."""


@cache
def _modules() -> dict[str, str]:
    """By a module: its names, some with `=` and another name of the same object, or `*` for all.

    `python -m tools.compat` writes them.
    """
    data = files("weft.mirror").joinpath("lacking.gz").read_bytes()
    parts = [row.partition(" ") for row in gzip.decompress(data).decode().splitlines()]
    rows = {module: names for module, _, names in parts}
    return rows | table.aliased(rows)


@cache
def _names() -> frozenset[str]:
    """The modules and names."""
    return frozenset([*_modules(), *_others()])


@cache
def _others() -> dict[str, str]:
    """By a name: the name of the same object that Weft has, or nothing."""
    pairs = [(m, *name.partition("=")) for m, row in _modules().items() for name in row.split()]
    return {f"{module}.{name}": other for module, name, _, other in pairs}


def same_as(path: str) -> str:
    """Another name of the same object, which Weft has; empty where there is none.

    >>> same_as("lightning.pytorch.callbacks.timer.Callback")
    'lightning.pytorch.callbacks.Callback'
    """
    return _others().get(path, "") if path.startswith(table.TORCH) else ""


def lacks(path: str) -> bool:
    """Whether another library has a dotted name that Weft lacks.

    >>> lacks("torch.nn.quantized.Linear"), lacks("torch.nn.Linear"), lacks("torch.nn.Lineer")
    (True, False, False)
    """
    parts = path.split(".")
    above = [".".join(parts[:n]) for n in range(1, len(parts))]
    return path in _names() or any([f"{each}.*" in _names() for each in above])


def is_given_module(path: str, frame: FrameType | None) -> bool:
    """Whether an import of a module that Weft lacks succeeds.

    Of modules whose names are not known, `import a.b` says that `b` is one.
    """
    above, _, name = path.rpartition(".")
    if path not in _modules():
        callers: list[str] = []
        at = frame
        while at is not None and at.f_globals.get("__name__") == "importlib._bootstrap":
            callers.append(at.f_code.co_name)
            at = at.f_back
        listed = _modules().get(above) not in (None, "*")
        if listed or not name.islower() or "_handle_fromlist" in callers or not lacks(path):
            return False
    return not is_asked(frame)


def is_asked(frame: FrameType | None) -> bool:
    """Whether an import runs where the program, or what imports it, catches that there is none."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package not in _NOT_ASKING and _catches(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def _catches(code: CodeType, at: int) -> bool:
    """Whether an `except` for a failed import, or for anything, is around an instruction."""
    parsed: Any = dis.Bytecode(code)
    handlers = [e.target for e in parsed.exception_entries if e.start <= at < e.end]
    lines = list(dis.get_instructions(code)) if handlers else []
    found = [[i for i in lines if i.offset > handler] for handler in handlers]
    return any([
        after[0].opname == "POP_TOP" or any([i.argval in _CAUGHT for i in after if i.argval])
        for after in found
    ])  # fmt: skip
