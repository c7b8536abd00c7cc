"""The base of styles: how a module's parameters are sharded, and how it is called."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any

from weft.errors import DistributedError
from weft.nn.module.module import Module
from weft.transport.group import Group

Forward = Callable[..., Any]


class ParallelStyle(abc.ABC):
    """How the ranks of a group share a module's work; subclasses define it."""

    def divide(self, module: Module, path: str, group: Group) -> None:
        """Keep this rank's shards of parameters; by default all stay whole."""
        del module, path, group

    @abc.abstractmethod
    def call(self, module: Module, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """The module's `forward` on this rank, given its original one."""

    def apply(self, module: Module, path: str, group: Group) -> None:
        """Apply the style to a module, in place.

        Raises:
            DistributedError: it already has a style.
        """
        if isinstance(module, ParallelModule):
            raise DistributedError.here(
                f"parallelize_module: {path or 'the module'!r} is a {type(module).__name__}, which "
                f"has a style already"
            )
        self.divide(module, path, group)
        module._parallel = self, group  # type: ignore[attr-defined]
        module.__class__ = _parallel_class(type(module))


class ParallelModule(Module):
    """A module with a style: its class is a subclass of this class and its original class."""

    _parallel: tuple[ParallelStyle, Group]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run this rank's share of the work."""
        style, group = self._parallel
        return style.call(self, super().forward, group, args, kwargs)


@functools.cache
def _parallel_class(original: type[Module]) -> type[Module]:
    fields = {"__module__": original.__module__, "__doc__": original.__doc__}
    return type(f"Parallel{original.__name__}", (ParallelModule, original), fields)
