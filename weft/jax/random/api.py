"""The names of `jax.random`, which imports them on first use."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.random.distribution import *
from weft.jax.random.draw import *

_exports.gather(globals())
