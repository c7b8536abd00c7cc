"""What a plan says of a module: how its parameters are divided, and how its call goes."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any

from weft.errors import DistributedError
from weft.ir.node import at_user_line
from weft.nn.module.module import Module
from weft.transport.group import Group

Forward = Callable[..., Any]


class ParallelStyle(abc.ABC):
    """How the ranks of a group share a module's work; a subclass says it."""

    def divide(self, module: Module, path: str, group: Group) -> None:
        """Keep this rank's part of the parameters; of all of them unless a subclass says so."""
        del module, path, group

    @abc.abstractmethod
    def call(self, module: Module, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """What the module's `forward` is on this rank, built of the one that it had before."""

    def apply(self, module: Module, path: str, group: Group) -> None:
        """Make a module one that works so.

        Raises:
            DistributedError: it has a style already.
        """
        if isinstance(module, ParallelModule):
            raise DistributedError(
                f"parallelize_module: {path or 'the module'!r} is a {type(module).__name__}, which "
                f"has a style already{at_user_line()}"
            )
        self.divide(module, path, group)
        module._parallel = self, group  # type: ignore[attr-defined]
        module.__class__ = _parallel_class(type(module))


class ParallelModule(Module):
    """A module that has a style: its class is a subclass of this one and of what it was before."""

    _parallel: tuple[ParallelStyle, Group]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """This rank's share of the work."""
        style, group = self._parallel
        return style.call(self, super().forward, group, args, kwargs)


@functools.cache
def _parallel_class(kind: type[Module]) -> type[Module]:
    fields = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(f"Parallel{kind.__name__}", (ParallelModule, kind), fields)
