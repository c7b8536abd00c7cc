"""`jax.scipy.stats`: distributions, one a module."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.scipy.stats import distribution as _distribution

for _name in _distribution.NAMES:
    globals()[_name] = _distribution.module_of(_name)
_exports.gather(globals(), *_distribution.NAMES)
