"""Which version of TensorFlow a program is for, by its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from weft.errors import ConfigError
from weft.mirror import table
from weft.mirror.check import files_of
from weft.mirror.uses import dotted_names

_OF_2: Final = ("tensorflow.compat.v1.disable_eager_execution",)
"""Names of version 1 that programs for version 2 call, which alone is eager from the start."""


def version_for(script: str, is_module: bool) -> int:
    """2 for a program that uses TensorFlow, and none of the names that only version 1 has.

    Modules beside the program that it imports are read, too.
    """
    found = False
    try:
        for tree in files_of(script, is_module):
            for path in _paths(tree):
                found = True
                if _is_of_1(path):
                    return 1
    except ConfigError:  # it is told where the program is run
        return 1
    return 2 if found else 1


def _paths(tree: ast.Module) -> Iterator[str]:
    for path in dotted_names(tree):
        if path.partition(".")[0] in table.TENSORFLOW:
            yield path


def _is_of_1(path: str) -> bool:
    if path in _OF_2:
        return False
    parts = path.split(".")
    heads = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(h in table.only_in_1() or f"{h}.*" in table.only_in_1() for h in heads)
