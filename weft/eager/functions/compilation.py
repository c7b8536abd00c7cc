"""`compile`, for compatibility: everything is compiled anyway."""

from __future__ import annotations

from typing import Any


def compile(model: Any = None, **options: Any) -> Any:
    """Return the model or function unchanged: what runs repeatedly is compiled anyway.

    Also a decorator, with or without arguments. `options` (`mode`, `fullgraph`, `dynamic`,
    `backend`, ...) have no effect.

    Example:
        >>> import weft as wf
        >>> @wf.compile
        ... def f(x):
        ...     return x * x + 1
        >>> f(wf.tensor(2.0)).item()
        5.0
    """
    return _same if model is None else model


def _same(model: Any) -> Any:
    return model
