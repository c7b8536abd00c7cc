"""Decorators and compilers of PyTorch that give the function back: Weft compiles by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["given", "no", "nothing", "same", "second"]


def same(function: Any = None, *arguments: Any, **options: Any) -> Any:
    """The function or module itself; with options alone, a decorator that returns it.

    >>> same(abs) is abs, same(dynamic=True)(abs) is abs
    (True, True)
    """
    del arguments, options
    return _itself if function is None else function


def given(*arguments: Any, **options: Any) -> Any:
    """A decorator with arguments, which returns the function itself."""
    del arguments, options
    return _itself


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def second(kind: Any, value: Any) -> Any:
    """The value of an annotation: `torch.jit.annotate(kind, value)`."""
    del kind
    return value


def no(*arguments: Any, **options: Any) -> bool:
    """False: nothing is being scripted, traced or exported."""
    del arguments, options
    return False


def nothing(*arguments: Any, **options: Any) -> None:
    """Does nothing: what would be noted for a compiler has no effect."""
    del arguments, options
