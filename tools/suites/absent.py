"""A stand-in for what Weft does not have, so that only the tests that use it fail.

While test files are imported, operator tables and decorators use many names that no test may ever
touch: then a stand-in accepts any use. Once tests run, using it raises `AttributeError`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NoReturn


class Phase:
    """Whether tests are running, and which modules may still use absent names."""

    running = False
    # Modules of the other library's test harness, which ask whether a value is, say, sparse.
    harness: tuple[str, ...] = ()

    @classmethod
    def forgives(cls, depth: int = 2) -> bool:
        """Whether the caller, `depth` frames up, may use a name that Weft does not have."""
        if not cls.running:
            return True
        caller: str = sys._getframe(depth).f_globals.get("__name__", "")
        return caller.startswith(cls.harness) if cls.harness else False


class AbsentBase:
    """A base class for a class that inherits from something absent."""

    absent_path = ""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise AttributeError(f"{self.absent_path} of {type(self).__name__}: Weft has none")


class Absent:
    """A name that Weft does not have; false, empty and equal to nothing but itself."""

    def __init__(self, path: str) -> None:
        self.__dict__["_path"] = path
        self.__dict__["__name__"] = path.rpartition(".")[2]
        self.__dict__["__doc__"] = ""

    def _refuse(self) -> NoReturn:
        raise AttributeError(f"{self._path}: Weft has none")

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__") and name.endswith("__") and name != "__call__":
            raise AttributeError(name)
        if not Phase.forgives():
            self._refuse()
        part = self.__dict__[name] = Absent(f"{self._path}.{name}")
        return part

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Creates something absent, or decorates a test, which fails; an error once tests run."""
        if Phase.running:
            self._refuse()
        if len(arguments) == 1 and isinstance(arguments[0], FunctionType):
            return self._decorated(arguments[0])
        return Absent(f"{self._path}()")

    def _decorated(self, function: FunctionType) -> FunctionType:
        @functools.wraps(function)
        def refused(*arguments: Any, **named: Any) -> NoReturn:
            self._refuse()

        return refused

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (type("AbsentBase", (AbsentBase,), {"absent_path": self._path}),)

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __subclasscheck__(self, kind: type) -> bool:
        return False

    def __getitem__(self, key: object) -> Any:
        if Phase.running:
            self._refuse()
        return Absent(f"{self._path}[{key!r}]")

    def __enter__(self) -> Absent:
        if Phase.running:
            self._refuse()
        return self

    def __exit__(self, *problem: object) -> None:
        pass

    def __or__(self, other: object) -> Any:
        return other

    __ror__ = __or__

    def __lt__(self, other: object) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__

    def __iter__(self) -> Iterator[Any]:
        if Phase.running:
            self._refuse()
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self._path
