"""The names of `jax.random`, which imports them on first use."""

from __future__ import annotations

import functools as _functools
from collections.abc import Callable as _Callable
from typing import Any as _Any

from weft import exports as _exports
from weft.jax.random import distribution as _distribution
from weft.jax.random import draw as _draw
from weft.jax.random.distribution import *
from weft.jax.random.draw import *


def _placed(draw: _Callable[..., _Any]) -> _Callable[..., _Any]:
    """The function with an argument about devices, which changes no value."""

    @_functools.wraps(draw)
    def run(*args: _Any, out_sharding: _Any = None, **kwargs: _Any) -> _Any:
        return draw(*args, **kwargs)

    return run


_KEYS = {
    "KeyArray", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "shuffle", "split",
    "wrap_key_data",
}  # fmt: skip
_DRAWS = {*_draw.__all__, *_distribution.__all__} - _KEYS
globals().update({n: _placed(f) for n, f in list(globals().items()) if n in _DRAWS})
_exports.gather(globals())
