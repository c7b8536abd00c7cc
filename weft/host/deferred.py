"""Modules that are imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


class Deferred:
    """Stands for a module, which is imported when one of its names is first read.

    For modules that most programs of a user never need, or need late: an import of them costs every
    process its time. Type checkers, and the test of layers, read the import itself:

        if TYPE_CHECKING:
            from weft.codegen import generator
        else:
            generator = Deferred("weft.codegen.generator")

    >>> Deferred("math").floor(2.5)
    2
    """

    __slots__ = ("_module",)

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)
