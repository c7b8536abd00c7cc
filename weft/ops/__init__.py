"""The operation catalogue: importing this package declares every operation.

Every operation is an attribute of it, and so are the functions that a family lists in its
`__all__`: `ops.tanh(x)`, `ops.dropout_mask(...)`; what declarations are written with, in
`ops.declaration`, is not. A new family is a new module in the folder of its
field; nothing else has to change.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

from weft.ops import declaration
from weft.ops.declaration import REGISTRY
from weft.ops.refusal import guard


def _modules(folder: str, package: str) -> Iterator[str]:
    """The names of all modules in a package and below, in a fixed order."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name, kind = os.path.splitext(entry.name)
            if kind == ".py" and name != "__init__":
                yield f"{package}.{name}"
            elif name.isidentifier() and name != "__pycache__" and entry.is_dir():
                yield f"{package}.{name}"
                yield from _modules(entry.path, f"{package}.{name}")


def _public() -> dict[str, Any]:
    modules = [importlib.import_module(name) for name in _modules(__path__[0], "weft.ops")]
    found: dict[str, Any] = dict(REGISTRY)
    for module in modules:
        if not module.__name__.startswith(declaration.__name__):
            found.update({name: vars(module)[name] for name in vars(module).get("__all__", ())})
    return found


_PUBLIC = _public()
globals().update(_PUBLIC)
guard(globals())


def __getattr__(name: str) -> Any:
    raise AttributeError(f"the catalogue has no operation {name!r}")


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
