"""How a name becomes public: `__all__` where it is defined, and an import in each package.

A package's `__init__` has `from weft.x.part import *`, or `from weft.x.part import name as name`
where a module has one public name, and then `_exports.gather(globals())`. Type checkers and editors
read the same imports. Names that are imported on first use are rows of `lazy`; a package that has
some gets a stub (`python -m tools.package_stubs`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final

from weft.host.garbage_collection import count_as_old, uncollected

NOT_OFFERED: Final = frozenset({"__future__", "typing", "weft.ops.refusal"})
"""Modules whose names an `__init__` imports for its own use."""


HOMES: Final[dict[type, str]] = {}
"""The modules of classes that report another library's, under which a program looked them up."""


def home_of(kind: type) -> str:
    """The module in which a class is, also if it reports another library's."""
    return HOMES.get(kind, kind.__module__)


def gather(namespace: dict[str, Any], *modules: str) -> None:
    """Set `__all__` of a package to what its `__init__` imports and defines.

    Args:
        namespace: the package's `globals()`.
        modules: the submodules that are public; others are there because something imported them.

    >>> names = {"__name__": "p", "relu": abs, "_private": abs, "nn": importlib, "Any": Any}
    >>> gather(names, "nn")
    >>> names["__all__"]
    ['nn', 'relu']
    """
    public = {name for name, value in namespace.items() if name[0] != "_" and _offered(value)}
    namespace["__all__"] = sorted(public.union(modules))


def _offered(value: Any) -> bool:
    return not isinstance(value, ModuleType) and getattr(value, "__module__", "") not in NOT_OFFERED


def lazy(
    namespace: dict[str, Any],
    rows: Mapping[str, Iterable[str]],
    otherwise: Callable[[str], Any] | None = None,
    listed: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Give a package names that are imported on first use: its `__getattr__` and `__dir__`.

    Args:
        namespace: the package's `globals()`, with `__all__`.
        rows: `{module: names}`, each the statement `from module import names`.
        otherwise: gives any other name, or raises AttributeError.
        listed: further names for `dir`.

    >>> names = {"__name__": "p", "__all__": ["e"], "e": 2.7}
    >>> lazy(names, {"math": ["tau"]})
    >>> names["__getattr__"]("tau"), names["__dir__"]()
    (6.283185307179586, ['e', 'tau'])
    """
    package = namespace["__name__"]
    modules = {name: module for module, names in rows.items() for name in names}

    @uncollected  # an import makes many objects and no garbage
    def load(name: str) -> Any:
        if name in modules:
            value = _imported(modules[name], name)
        elif otherwise is not None:
            value = otherwise(name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value  # so that Python asks once
        count_as_old()
        return value

    namespace["__lazy__"] = modules  # for tools/package_stubs.py
    namespace["__getattr__"] = load
    namespace["__dir__"] = lambda: sorted({*namespace.get("__all__", ()), *modules, *listed()})


def lazy_whole(namespace: dict[str, Any], module: str) -> None:
    """Give a package all names of a module, which is imported when one is first used.

    Args:
        namespace: the package's `globals()`.

    >>> names = {"__name__": "p", "__all__": []}
    >>> lazy_whole(names, "math")
    >>> names["__getattr__"]("pi"), "tau" in names["__dir__"]()
    (3.141592653589793, True)
    """

    def names() -> list[str]:
        return [name for name in dir(importlib.import_module(module)) if name[0] != "_"]

    def load(name: str) -> Any:
        return names() if name == "__all__" else getattr(importlib.import_module(module), name)

    lazy(namespace, {}, load, names)
    namespace["__whole__"] = module  # for tools/package_stubs.py


def _imported(module: str, name: str) -> Any:
    """What `from module import name` gives."""
    names = vars(importlib.import_module(module))
    return names[name] if name in names else importlib.import_module(f"{module}.{name}")
