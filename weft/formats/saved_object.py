"""Objects of importable classes in saved structures: a class's name and a state, never code.

model                   {"weft.saved": "object", "name": "net:Net", "number": 0, "state": {...}}
its tied weight         {"weft.saved": "again", "number": 1}
a function, a class     {"weft.saved": "name", "name": "math:sqrt"}
a NumPy array           {"weft.saved": "array", "data": ...}
a dict with other keys  {"weft.saved": "dict", "items": [[key, value], ...]}
"""

from __future__ import annotations

import copyreg
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

import numpy as np

from weft.errors import DataError
from weft.exports import home_of

SAVED: Final = "weft.saved"
_CALLED: Final = ("weft.", "pathlib:")
"""Modules whose functions and classes may be called to make an object again."""
_SAFE: Final = ("weft.ir.dtype:_named", "weft.eager.tensor.device:Device")
"""Names that may be used in any file."""
_NAMED: Final = (type, FunctionType, BuiltinFunctionType)


def name_of(x: Any) -> str:
    """The name under which something can be imported; empty if there is none."""
    module = home_of(x) if isinstance(x, type) else getattr(x, "__module__", None)
    place = (module, getattr(x, "__qualname__", None))
    try:
        name = f"{place[0]}:{place[1]}"
        return name if named(name) is x else ""
    except (ImportError, AttributeError, ValueError, TypeError):
        return ""


def named(name: str) -> Any:
    """What a name of `name_of` stands for; imports its module.

    >>> named("math:floor")(1.5)
    1
    """
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


class _Kept(np.ndarray[Any, Any]):
    """An array that is saved as it is."""


class Folding:
    """Replaces objects by dicts, for `nested_arrays.parts`; an object that comes again by its
    number.

    Args:
        is_tensor: whether something is saved as an array.
        fold: for a tensor of a class of its own, its parts as keyword arguments; else `None`.
    """

    def __init__(
        self, is_tensor: Callable[[Any], bool], fold: Callable[[Any], dict[str, Any] | None]
    ) -> None:
        self._is_tensor, self._fold = is_tensor, fold
        self._numbers: dict[int, tuple[int, Any]] = {}  # with the objects, so that ids stay theirs

    def __call__(self, x: Any) -> Any:
        """What is saved for it.

        Raises:
            ValueError: its class, or the function, cannot be imported, or it holds more than a
                state.
        """
        if x is None or (isinstance(x, str | int | float) and not isinstance(x, Enum)):
            return x
        if isinstance(x, np.generic | np.ndarray) and not isinstance(x, _Kept):
            return _of_numpy(x)
        if self._is_tensor(x):
            parts = self._fold(x)
            return x if parts is None else self._numbered(x, {SAVED: "tensor", **parts})
        if isinstance(x, Mapping | list | tuple):
            return _container(x)
        if isinstance(x, Enum):
            return {SAVED: "name", "name": f"{_importable(x, type(x))}.{x.name}"}
        if isinstance(x, set | frozenset):
            return {SAVED: type(x).__name__, "items": sorted(x, key=repr)}
        if isinstance(x, _NAMED):
            return {SAVED: "name", "name": _importable(x, x)}
        made = _reduced(x)
        if made[0] is not copyreg.__newobj__:  # type: ignore[attr-defined]
            return {SAVED: "call", "name": name_of(made[0]), "items": list(made[1])}
        parts = {SAVED: "object", "name": _importable(x, type(x))}
        return self._numbered(x, parts, made[2] if len(made) > 2 else None)

    def _numbered(self, x: Any, parts: dict[str, Any], state: Any = None) -> Any:
        known = self._numbers.get(id(x))
        if known is not None:
            return {SAVED: "again", "number": known[0]}
        number = len(self._numbers)
        self._numbers[id(x)] = (number, x)
        return {**parts, "number": number, "state": state}


def _container(x: Any) -> Any:
    """What is saved for a dict, a list or a tuple."""
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return {SAVED: "tuple", "name": _importable(x, type(x)), "items": list(x)}
    if isinstance(x, Mapping):
        if SAVED in x:
            raise ValueError(f"names besides {SAVED!r}, got it in the {type(x).__name__}")
        if not all([type(key) in (str, int) for key in x]):
            return {SAVED: "dict", "items": [list(item) for item in x.items()]}
    return x


def _of_numpy(x: Any) -> dict[str, Any]:
    """What is saved for an array or a scalar of NumPy."""
    if x.dtype.kind in "biufc":
        return {
            SAVED: "array",
            "data": np.asarray(x).view(_Kept),
            "scalar": isinstance(x, np.generic),
        }
    return {
        SAVED: "items",
        "dtype": x.dtype.str,
        "shape": list(x.shape),
        "items": x.ravel().tolist(),
    }


def _importable(x: Any, what: Any) -> str:
    name = name_of(what)
    if not name:
        of = "" if x is what else f", the class of {x!r:.60}"
        raise ValueError(f"classes and functions that can be imported, got {what!r}{of}")
    return name


def _reduced(x: Any) -> tuple[Any, ...]:
    """A class and a state, as for pickle; or a call of one of `_CALLED`."""
    try:
        made: Any = x.__reduce_ex__(2)
    except TypeError:
        made = None
    if isinstance(made, tuple) and not any([part is not None for part in made[3:]]):  # pyright: ignore[reportUnknownVariableType]
        plain = made[0] is copyreg.__newobj__ and len(made[1]) == 1  # type: ignore[attr-defined]
        if plain or (len(made) == 2 and name_of(made[0]).startswith(_CALLED)):  # pyright: ignore[reportUnknownArgumentType]
            return made  # pyright: ignore[reportUnknownVariableType]
    raise ValueError(f"objects that are a class and a state, got {type(x).__name__} ({x!r:.60})")


class Unfolding:
    """Puts the objects back in a structure.

    Args:
        path: of the file, for errors.
        safe: names of classes and functions that may be used; `None` for all.
        tensor: makes a tensor of a class of its own of its parts.
    """

    def __init__(self, path: Any, safe: Iterable[str] | None, tensor: Callable[..., Any]) -> None:
        self._path, self._tensor = path, tensor
        self._safe = None if safe is None else {*_SAFE, *safe}
        self._found: dict[int, Any] = {}

    def __call__(self, x: Any) -> Any:
        """The structure with objects.

        Raises:
            DataError: a class may not be used, or cannot be imported.
        """
        if isinstance(x, list | tuple):
            items: Sequence[Any] = x
            return type(x)([self(each) for each in items])
        if not isinstance(x, dict):
            return x
        kind: Any = x.get(SAVED)
        if kind is None:
            whole: dict[Any, Any] = x
            return {key: self(each) for key, each in whole.items()}
        return self._saved(kind, x)

    def _saved(self, kind: str, x: dict[Any, Any]) -> Any:
        if kind == "again":
            return self._found[x["number"]]
        if kind == "tensor":
            made = self._tensor(**{k: x[k] for k in x if k not in (SAVED, "number", "state")})
            self._found[x["number"]] = made
            return made
        if kind == "object":
            return self._object(x)
        if kind == "name":
            return self._named(x["name"])
        if kind == "array":
            array = x["data"].numpy()
            return array[()] if x["scalar"] else array
        items = [self(each) for each in x["items"]]
        if kind == "call" and not str(x["name"]).startswith(_CALLED):
            raise DataError(f"load: {self._path} is damaged: it calls {x['name']}")
        if kind in ("call", "tuple"):
            return self._named(x["name"])(*items)
        if kind == "items":
            return np.array(items, dtype=x["dtype"]).reshape(x["shape"])
        return {"set": set, "frozenset": frozenset, "dict": dict}[kind](items)

    def _object(self, x: dict[Any, Any]) -> Any:
        kind = self._named(x["name"])
        made = self._found[x["number"]] = kind.__new__(kind)
        state = self(x["state"])
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
            return made
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        vars(made).update(attributes or {}) if hasattr(made, "__dict__") else None
        for name, value in (slots or {}).items():
            setattr(made, name, value)
        return made

    def _named(self, name: str) -> Any:
        if self._safe is not None and name not in self._safe:
            raise DataError(
                f"load: {self._path} holds objects, the first of {name.replace(':', '.')}, whose "
                f"module would be imported: if you trust the file, load it with weights_only=False"
            )
        try:
            return named(name)
        except (ImportError, AttributeError) as error:
            raise DataError(
                f"load: {self._path} holds an object of {name.replace(':', '.')}, which cannot be "
                f"imported: {error}"
            ) from None
