"""`jax.scipy.stats`: distributions, one a module."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.scipy.stats import distribution as _distribution

__all__: list[str] = []


_modules = {name: _distribution.module_of(name) for name in _distribution.NAMES}


def _face(name: str) -> object:
    if name not in _modules:
        raise AttributeError(f"module 'jax.scipy.stats' has no attribute {name!r}")
    return _modules[name]


_exports.lazy(globals(), {}, _face, lambda: _modules)
