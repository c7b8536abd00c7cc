"""Deprecated call signatures that PyTorch still accepts, with a warning."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.ops.warning import warn

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

Function = Callable[..., "Tensor"]


def older(*names: str) -> Callable[[Function], Function]:
    """Also accept the call signature from before PyTorch 1.5, with numbers before their tensors.

    Args:
        names: the parameters that those numbers are for.

    Example:
        >>> import weft as wf
        >>> @older("scale")
        ... def scaled(x, *, scale=1):
        ...     return x * scale
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     scaled(2, wf.ones(2)).tolist()
        [2.0, 2.0]
    """

    def also(function: Function) -> Function:
        @functools.wraps(function)
        def called(*given: Any, **named: Any) -> Tensor:
            numbers = [x for x in given if isinstance(x, int | float | complex)]
            if not numbers:
                return function(*given, **named)
            text = f"{function.__name__}: pass {' and '.join(names)} by name, behind the tensors"
            warn(text)
            tensors = [x for x in given if not isinstance(x, int | float | complex)]
            return function(*tensors, **dict(zip(names, numbers, strict=False)), **named)

        return called

    return also
