"""`tf.Module`: an object whose attributes are variables and other modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.tf1.framework.graph import name_scope
from weft.tf1.framework.structure import flatten
from weft.tf1.variable.variable import Variable

__all__ = ["Module"]


class Module:
    """Base class of objects that have variables, also in lists and dicts and in other modules.

    Args:
        name: its name; the class's by default.

    >>> import weft.tf1 as tf
    >>> class Scale(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = tf.Variable(2.0)
    >>> with tf.Graph().as_default():
    ...     len(Scale().trainable_variables)
    1
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name or "".join(
            [f"_{c.lower()}" if c.isupper() and i else c.lower()
             for i, c in enumerate(type(self).__name__)]
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def name_scope(self) -> Any:
        """A scope of names for its operations."""
        return name_scope(self._name)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables, by the names of attributes, then those of its parts."""
        return tuple(dict.fromkeys(_variables(self, {id(self)})))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those that training changes."""
        return tuple([v for v in self.variables if v.trainable])

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The modules and layers among its attributes, and those among theirs."""
        found: list[Any] = []
        for part in _parts(self):
            if not isinstance(part, Variable):
                found += [part, *(part.submodules if isinstance(part, Module) else ())]
        return tuple(dict.fromkeys(found))


def _parts(module: Any) -> Iterator[Any]:
    """The variables, modules and layers among attributes."""
    for _, value in sorted(vars(module).items()):
        for leaf in flatten(value):
            if isinstance(leaf, Variable | Module) or hasattr(leaf, "trainable_weights"):
                yield leaf


def _variables(module: Any, seen: set[int]) -> Iterator[Variable]:
    if not isinstance(module, Module):
        yield from module.variables
        return
    parts = list(_parts(module))
    yield from [part for part in parts if isinstance(part, Variable)]
    for part in parts:
        if not isinstance(part, Variable) and id(part) not in seen:
            seen.add(id(part))
            yield from _variables(part, seen)
