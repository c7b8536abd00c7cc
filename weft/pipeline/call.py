"""Calls of user functions: errors name the element, random numbers are keyed by it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from weft.errors import UserOpError
from weft.host.mix import mix

_local: Final = threading.local()


def called(function: Callable[..., Any], element: Any, what: str, position: int) -> Any:
    """`function(element)`; the parts of a tuple are separate arguments.

    Exceptions get a note that says where they were raised.

    Raises:
        UserOpError: the function raised StopIteration, which would silently end the pass.
    """
    try:
        return function(*element) if isinstance(element, tuple) else function(element)
    except StopIteration as error:
        raise UserOpError(f"{what}: the function raised StopIteration at {position}") from error
    except Exception as error:
        error.add_note(f"raised by {what}({title(function)}) at element {position}")
        raise


def title(function: Any) -> str:
    """A function's name."""
    return getattr(function, "__name__", type(function).__name__)


def called_with_key(
    function: Callable[..., Any], element: Any, what: str, position: int, seed: int
) -> Any:
    """Like `called`, with `element_random()` keyed by the seed and the position."""
    before = getattr(_local, "key", None)
    _local.key = seed, position
    _local.generator = None
    try:
        return called(function, element, what, position)
    finally:
        _local.key = before
        _local.generator = None


@contextlib.contextmanager
def keyed(*key: int) -> Iterator[None]:
    """Sets `element_random()`, keyed by numbers, such as a seed and a position."""
    before = getattr(_local, "key", None)
    _local.key = key
    _local.generator = None
    try:
        yield
    finally:
        _local.key = before
        _local.generator = None


def element_random() -> np.random.Generator | None:
    """The generator of the current element; None outside of a pipeline.

    It depends on the seed, the epoch and the element's position, not on threads or earlier calls.
    """
    key: Any = getattr(_local, "key", None)
    if key is None:
        return None
    if _local.generator is None:
        _local.generator = np.random.Generator(np.random.Philox(key=mix(*key)))
    return _local.generator


def element_random_used() -> bool:
    """Whether `element_random` was called for the current element."""
    return getattr(_local, "generator", None) is not None
