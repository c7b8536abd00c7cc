"""Writes which names of an installed library are the same object: `python -m tools.compat.same`.

A line has all paths of a module, class or function that has several, the first one its home: also
those of what modules import for themselves, such as `torch.nn.modules.batchnorm.F`. Run it where
PyTorch, Lightning and torchmetrics are installed; `weft/mirror/lacking.gz` is made of it.
"""

from __future__ import annotations

import gzip
import importlib
import sys
import warnings
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

from tools.compat.listing import FOLDER, read

FILE: Path = FOLDER / "same.txt.gz"


def groups(library: str) -> list[list[str]]:
    """The paths of each module, class or function that has several."""
    paths: dict[int, list[str]] = {}
    homes: dict[int, str] = {}
    for module, names in read(library)[1].items():
        try:
            owner = importlib.import_module(module)
        except Exception:
            continue  # a class with members
        for name in {*names, *vars(owner)}:
            value = getattr(owner, name, None)
            if isinstance(value, ModuleType) and value.__name__.startswith(library):
                home = value.__name__
            elif isinstance(value, type | FunctionType | BuiltinFunctionType):
                home = f"{value.__module__}.{value.__qualname__}"
            else:
                continue
            paths.setdefault(id(value), []).append(f"{module}.{name}")
            homes[id(value)] = home
    every = [(homes[key], found) for key, found in paths.items()]
    return [
        sorted({home, *found}, key=lambda path: (path != home, path))
        for home, found in every
        if len({home, *found}) > 1
    ]


def read_same() -> list[list[str]]:
    """The groups, from the file in the repository."""
    return [line.split() for line in gzip.decompress(FILE.read_bytes()).decode().splitlines()]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = [group for library in sys.argv[1:] for group in groups(library)]
    FILE.write_bytes(gzip.compress("\n".join(map(" ".join, found)).encode(), mtime=0))
