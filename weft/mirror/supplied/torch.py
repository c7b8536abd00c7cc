"""Names at the top of `torch` that only programs for PyTorch ask for."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from weft.eager.tensor.dtype.dtype_info import finfo as limits
from weft.mirror.supplied.absent import Absent
from weft.mirror.supplied.same import same

__all__ = ["check", "compile", "finfo", "newaxis", "typename"]

compile = same
newaxis = None


def typename(obj: Any, /) -> str:
    """The name of an object's class, with its module.

    >>> typename(1)
    'int'
    """
    kind = obj if isinstance(obj, type) else type(obj)
    place = kind.__module__
    return kind.__qualname__ if place == "builtins" else f"{place}.{kind.__qualname__}"


def check(condition: Any, message: Any = "") -> None:
    """An assertion that PyTorch can trace.

    Raises:
        AssertionError: the condition is false.
    """
    if not condition:
        raise AssertionError(message() if callable(message) else message)


def finfo(dtype: Any = None) -> Any:
    """The limits of a floating-point type; also of the 8-bit ones, which no tensor has here."""
    if isinstance(dtype, Absent):
        return ml_dtypes.finfo(dtype.__name__)
    return limits(dtype)
