"""Arguments whose classes override functions: PyTorch's protocol `__torch_function__`.

Functions do not look for such arguments, so that calls without them cost nothing. A function that
meets one cannot compute with it: an object that is no tensor is refused, and a tensor of such a
class raises `Overridden` where its value is read. The outermost door then asks the class.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any, Final

from weft.errors import WeftError
from weft.ir.node import PACKAGE

DOORS: Final[set[CodeType]] = set()
"""The code of all doors (`weft.ops.refusal`), which ask overriding classes."""
MOST_DEPTH: Final = 2  # of sequences in arguments, as in `stack([x, y])`

_INNER: Final = tuple([f"{PACKAGE}eager/{part}/" for part in ("record", "tensor/view")])


class Overridden(WeftError):
    """A function has met a tensor whose class overrides it."""


class _Now(threading.local):
    off = 0


now: Final = _Now()


class Disabled:
    """A context in which tensors of all classes are plain ones."""

    def __enter__(self) -> None:
        now.off += 1

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        now.off -= 1


def overrides(kind: type[Any]) -> bool:
    """Whether a class overrides functions; no class of tensors does while that is off."""
    known = getattr(kind, "overrides_functions", None)
    if known is None:
        return hasattr(kind, "__torch_function__")
    return bool(known) and not now.off


def is_inside_door(frame: FrameType | None) -> bool:
    """Whether the package's calls from here up to the user's line include a door.

    What reads values to compute what is recorded is inside none.
    """
    while frame is not None and (file := frame.f_code.co_filename).startswith((PACKAGE, "<")):
        if frame.f_code in DOORS:
            return True
        if file.startswith(_INNER):
            return False
        frame = frame.f_back
    return False


def _parts(values: Iterable[Any], depth: int = MOST_DEPTH) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple) and depth:
            yield from _parts(value, depth - 1)
        else:
            yield value


def overriding(args: Iterable[Any], options: Mapping[str, Any]) -> list[Any]:
    """The first argument of each overriding class, those of subclasses first."""
    found: list[Any] = []
    for x in _parts([*args, *options.values()]):
        kind: type[Any] = type(x)
        if overrides(kind) and kind not in [type(y) for y in found]:
            places = [i for i, y in enumerate(found) if issubclass(kind, type(y))]
            found.insert(min(places, default=len(found)), x)
    return found


def overridden(
    function: Callable[..., Any], found: list[Any], args: Iterable[Any], options: Mapping[str, Any]
) -> Any:
    """What the first class that implements a function makes of it.

    Raises:
        TypeError: none does.
    """
    kinds = tuple([type(x) for x in found])
    for x in found:
        result = x.__torch_function__(function, kinds, tuple(args), dict(options))
        if result is not NotImplemented:
            return result
    name = getattr(function, "__name__", repr(function))
    raise TypeError(f"{name}: none of {[k.__name__ for k in kinds]} implements it")
