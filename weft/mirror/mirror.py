"""Modules under other libraries' names whose attributes are Weft's."""

from __future__ import annotations

import dis
import importlib
import sys
from types import FrameType, ModuleType
from typing import Any, Final

from weft.exports import HOMES
from weft.mirror import table
from weft.mirror.lacking import is_asked, lacks, same_as
from weft.mirror.reordered import reordered
from weft.mirror.supplied.absent import absent

_FROM_IMPORT: Final = dis.opmap["IMPORT_FROM"]
_NOTHING: Final = object()


_own: Final[Any] = vars(ModuleType)["__dict__"].__get__
"""The names that a module has already."""


class Mirror(ModuleType):
    """A module of another library; its names are looked up in Weft's modules on first use."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names: programs choose a layer by `torch.nn.__dict__[name]`."""
        for name in dir(self):
            getattr(self, name, None)
        return _own(self)

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        value = found(path)
        if value is _NOTHING and path in table.later():
            value = absent(path)
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if value is _NOTHING and _is_import(frame) and lacks(path) and not is_asked(frame):
            value = absent(path)
        if value is _NOTHING:
            error = ImportError if _is_import(frame) else AttributeError
            dunder = name.startswith("__") and name.endswith("__")
            raise error(path if dunder else table.missing(path))
        if isinstance(value, type) and self.__name__.startswith(table.TORCH):
            _move(value, name, self.__name__)
        _own(self)[name] = value  # so that Python asks once
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds an imported submodule; a function of that name comes first, as in PyTorch
        if not isinstance(value, Mirror) or isinstance(found(f"{self.__name__}.{name}"), Mirror):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*_own(self), *names_of(self.__name__)})


def _move(kind: type, name: str, module: str) -> None:
    """Let a class of Weft report the module under which it was looked up first.

    Programs compare it with a module's name, or look for a part of it.
    """
    if kind.__module__.startswith("weft.") and name == kind.__qualname__:
        HOMES[kind] = kind.__module__
        kind.__module__ = module


def _is_import(frame: FrameType) -> bool:
    """Whether a frame executes `from module import name`."""
    return frame.f_code.co_code[frame.f_lasti] == _FROM_IMPORT


def found(path: str) -> Any:
    """What a dotted name of another library is in Weft; `_NOTHING` if Weft lacks it."""
    value = found_itself(path)
    other = same_as(path) if value is _NOTHING else ""
    return found_itself(other) if other else value


def found_itself(path: str) -> Any:
    """The same, without names that are others' in the other library, too."""
    place = table.names().get(path)
    if place is not None:
        module, _, name = place.partition(":")
        return getattr(importlib.import_module(module), name)
    parent, _, name = path.rpartition(".")
    value = _NOTHING if name.startswith("_") else _first(parent, name)
    if path in table.arguments_of_2():
        value = reordered(value, path)
    if value is not _NOTHING and not isinstance(value, ModuleType):
        return value
    return importlib.import_module(path) if path in table.modules() else _NOTHING


def has(path: str) -> bool:
    """Whether Weft has a dotted name of another library.

    >>> has("torch.nn.Linear"), has("torch.jit.load")
    (True, False)
    """
    return has_itself(path) or has_itself(same_as(path))


def has_itself(path: str) -> bool:
    """Whether Weft has it without names that are others' in the other library, too."""
    return path in table.modules() or path in table.names() or found_itself(path) is not _NOTHING


def _first(parent: str, name: str) -> Any:
    """The first of the parent's modules in Weft that has a name."""
    for module in table.modules().get(parent, ()):
        value = getattr(importlib.import_module(module), name, _NOTHING)
        if value is not _NOTHING and not isinstance(value, ModuleType):
            return value
    return _NOTHING


def names_of(module: str) -> set[str]:
    """The names of a module of another library that Weft has."""
    below = f"{module}."
    named = [path.removeprefix(below) for path in (*table.modules(), *table.names())]
    known = {
        n for path, n in zip((*table.modules(), *table.names()), named, strict=True) if path != n
    }
    known = {name for name in known if "." not in name}
    for place in table.modules().get(module, ()):
        weft = importlib.import_module(place)
        told = "__dir__" in vars(weft)  # also names that are made on first use
        listed = dir(weft) if told else getattr(weft, "__all__", dir(weft))
        known.update([n for n in listed if n[0] != "_" and has(f"{below}{n}")])
    return known
