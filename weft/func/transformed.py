"""What a transformation gives back: a function with the name of the one that it was made of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.ops.refusal import refusing

Function = Callable[..., Any]


def transformed(fun: Function) -> Callable[[Function], Function]:
    """Decorate the function that a transformation of `fun` returns.

    It has the name and the signature of `fun`, and refuses arguments in Weft's words.

    >>> @transformed(abs)
    ... def twice(x):
    ...     return 2 * abs(x)
    >>> twice.__name__
    'abs'
    """

    def decorate(inner: Function) -> Function:
        return refusing(functools.wraps(fun)(inner))

    return decorate
