"""Special functions that SciPy computes, on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.eager.functions.elementwise.hosted import run_hosted
from weft.errors import DTypeError
from weft.ir.node import at_user_line
from weft.numpy.convert import alike, floats
from weft.ops.special.hosted import SLOPES


def function(name: str, doc: str, called: str | None = None) -> Callable[..., Any]:
    """A function of `scipy.special` as one of arrays.

    Args:
        called: the name in messages, if it differs.
    """
    shown = called or name

    def run(*xs: Any) -> Any:
        if len(xs) != len(SLOPES[name]):
            raise DTypeError(
                f"{shown}: expected {len(SLOPES[name])} arguments, got {len(xs)}{at_user_line()}"
            )
        return run_hosted(name, alike(*[floats(x) for x in xs]), shown)

    run.__name__ = run.__qualname__ = shown
    run.__doc__ = doc
    return run
