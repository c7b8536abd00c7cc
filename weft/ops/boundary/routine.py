"""Functions with names, by which programs on disk and on other tasks call them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from weft.errors import GraphError
from weft.ir.record import record

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}


@record
@dataclass(frozen=True)
class Routine:
    """A function by its name: of arrays, or of values whose gradient it builds.

    Attributes:
        values: its first arguments, attributes that have text.

    Raises:
        GraphError: there is no function of this name.
    """

    name: str
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in _FUNCTIONS and self.name.startswith("weft."):
            with contextlib.suppress(ImportError):  # its module declares it
                importlib.import_module(self.name.rpartition(".")[0])
        if self.name not in _FUNCTIONS:
            raise GraphError(f"host_call: this Weft has no function {self.name!r}")

    def of(self, *values: Any) -> Routine:
        """The function with its next arguments given."""
        return Routine(self.name, (*self.values, *values))

    def __call__(self, *arrays: Any) -> Any:
        """Its results."""
        return _FUNCTIONS[self.name](*self.values, *arrays)


def routine(function: Callable[..., Any]) -> Routine:
    """Declare that graphs name a function, which its module defines at its top level.

    >>> import numpy as np
    >>> routine(np.linalg.det)
    Routine(name='numpy.linalg.det', values=())
    """
    name = f"{function.__module__}.{function.__qualname__}"
    _FUNCTIONS[name] = function
    return Routine(name)
