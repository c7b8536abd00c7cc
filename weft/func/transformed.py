"""Decorates functions returned by transformations: name, signature and errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.ops.refusal import check_function, refusing

Function = Callable[..., Any]


def transformed(fun: Function, what: str) -> Callable[[Function], Function]:
    """Decorate the function that the transformation `what` of `fun` returns.

    It gets the name and signature of `fun`, and turns exceptions for bad arguments into Weft's
    errors.

    Raises:
        DTypeError: `fun` is no function.

    >>> @transformed(abs, "twice")
    ... def twice(x):
    ...     return 2 * abs(x)
    >>> twice.__name__
    'abs'
    """

    check_function(fun, what)

    def decorate(inner: Function) -> Function:
        return refusing(functools.wraps(fun)(inner))

    return decorate
