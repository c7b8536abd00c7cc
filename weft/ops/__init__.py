"""The operation catalogue: importing this package declares every operation.

Every operation is an attribute of it, and so are the functions that a family lists in its
`__all__`: `ops.tanh(x)`, `ops.dropout_mask(...)`; what declarations are written with, in
`ops.declaration`, is not. A new family is a new module in the folder of its
field; nothing else has to change.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from weft.ops import declaration
from weft.ops.declaration import REGISTRY
from weft.ops.refusal import guard


def _public() -> dict[str, Any]:
    modules = [
        importlib.import_module(m.name) for m in pkgutil.walk_packages(__path__, "weft.ops.")
    ]
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
