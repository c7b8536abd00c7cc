"""`jax.debug`: printing and callbacks when the program runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.func.tree import flatten
from weft.jax.config import without_effect
from weft.jax.host import values
from weft.jax.host import watched as _watched
from weft.jax.transform import arrays

__all__ = ["breakpoint", "callback", "print"]

_print = print


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print a format with values, also in traced functions.

    >>> print("x = {}", 1)
    x = 1
    """
    said = functools.partial(_said, fmt)
    callback(said, *args, ordered=ordered, **kwargs)


def _said(fmt: str, *args: Any, **kwargs: Any) -> None:
    _print(fmt.format(*args, **kwargs))


def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any
) -> None:
    """Call a function with the values of arrays, also in traced functions.

    In a traced function, it is called with the next value that depends on one of the arrays.
    """
    without_effect("debug.callback", ordered=ordered)
    leaves, tree = flatten(arrays((args, kwargs)))
    known = values([x for x in leaves if hasattr(x, "lazy")])
    if known is None:
        _watched(callback, leaves, tree)
        return
    rest = iter(known)
    given, named = tree.build([next(rest) if hasattr(x, "lazy") else x for x in leaves])
    callback(*given, **named)


def breakpoint(**_: Any) -> None:
    """Nothing: traced functions are not stopped."""
