"""`arg_scope`: defaults of layers' arguments inside a `with` block."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from weft.documentation import with_arguments

__all__ = [
    "add_arg_scope", "arg_scope", "arg_scoped_arguments", "current_arg_scope", "has_arg_scope",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Scope = dict[Any, dict[str, Any]]
"""By a function's key: its defaults."""


class _Current(threading.local):
    scope: Mapping[Any, dict[str, Any]] = {}


_current = _Current()
_known: dict[Any, tuple[str, ...]] = {}


def _key(function: Any) -> Any:
    return getattr(function, "_key_op", (getattr(function, "__module__", ""), str(function)))


def add_arg_scope(function: F) -> F:
    """A decorator: the function's arguments can have defaults by `arg_scope`.

    >>> @add_arg_scope
    ... def layer(x, size=1):
    ...     return x, size
    >>> with arg_scope([layer], size=3):
    ...     layer(0), layer(0, size=2)
    ((0, 3), (0, 2))
    """
    key = (function.__module__, getattr(function, "__qualname__", repr(function)))

    @functools.wraps(function)
    def scoped(*args: Any, **options: Any) -> Any:
        return function(*args, **{**_current.scope.get(key, {}), **options})

    scoped._key_op = key  # type: ignore[attr-defined]
    code = getattr(function, "__code__", None)
    _known[key] = code.co_varnames[: code.co_argcount] if code is not None else ()
    scoped.__doc__ = with_arguments(function.__doc__, ())
    return scoped  # type: ignore[return-value]


@contextlib.contextmanager
def arg_scope(
    list_ops_or_scope: Sequence[Any] | Mapping[Any, Any], **kwargs: Any
) -> Iterator[Mapping[Any, dict[str, Any]]]:
    """Inside, functions have these defaults.

    Args:
        list_ops_or_scope: functions with `add_arg_scope`; or a scope that another `with` gave,
            which is entered again.
        kwargs: the defaults.

    Raises:
        ValueError: a function has no `add_arg_scope`, or a scope comes with defaults.
    """
    before = _current.scope
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError("arg_scope: expected no defaults beside a scope that is entered again")
        scope: Mapping[Any, dict[str, Any]] = list_ops_or_scope
    else:
        inner: Scope = dict(before)
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise ValueError(f"arg_scope: {function} has no @add_arg_scope")
            inner[_key(function)] = {**inner.get(_key(function), {}), **kwargs}
        scope = inner
    _current.scope = scope
    try:
        yield scope
    finally:
        _current.scope = before


def current_arg_scope() -> Mapping[Any, dict[str, Any]]:
    """The scope that holds now."""
    return _current.scope


def has_arg_scope(function: Any) -> bool:
    """Whether a function has `add_arg_scope`."""
    return _key(function) in _known


def arg_scoped_arguments(function: Any) -> tuple[str, ...]:
    """The arguments of a function with `add_arg_scope`."""
    return _known[_key(function)]
