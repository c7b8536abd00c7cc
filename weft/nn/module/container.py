"""Containers of modules: sequential, list, dict."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from weft.ir.node import at_user_line
from weft.nn.module.module import Module, shown

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def position(name: str, index: Any, size: int) -> int:
    """A possibly negative index as one from 0."""
    number = operator.index(index)
    if not -size <= number < size:
        raise IndexError(f"{name}: expected an index below {size}, got {number}{at_user_line()}")
    return number % size


class _Modules(Module):
    """What containers in order have in common."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def append(self, module: Module) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove a module and return it."""
        module = self[index]  # type: ignore[index]
        del self[index]  # type: ignore[attr-defined]
        return module


class Sequential(_Modules):
    """Calls modules one after another.

    Takes modules, or one ordered dict of modules.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """The last module's output."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[operator]
        return input

    def _key(self, index: Any) -> str:
        keys = list(self._modules)
        return keys[position("Sequential", index, len(keys))]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            del self._modules[key]
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        keys = list(self._modules)
        if all(key.isdigit() for key in keys):
            self._modules.clear()
            self._modules.update({str(i): m for i, m in enumerate(modules)})

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*self).__imul__(times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        if not isinstance(times, int) or times < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            error = ValueError if isinstance(times, int) else TypeError  # pyright: ignore[reportUnnecessaryIsInstance]
            raise error(f"Sequential: expected a factor from 1, got {times!r}{at_user_line()}")
        return self.extend(list(self) * (times - 1))

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at `index`.

        Raises:
            IndexError: the index is out of range.
            TypeError: the value is not a module.
        """
        if not -len(self) <= index <= len(self):
            raise IndexError(
                f"Sequential: expected an index from {-len(self)} to {len(self)}, got {index}"
                f"{at_user_line()}"
            )
        entries = list(self._modules.values())
        entries.insert(index, module)
        self.add_module(str(len(self)), module)
        self._renumber(entries)
        return self


class ModuleList(_Modules):
    """A list of modules.

    Args:
        modules: several modules.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _key(self, index: Any) -> str:
        return str(position("ModuleList", index, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        self.add_module(self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        entries = list(self)
        del entries[index]
        self._put(entries)

    def _put(self, entries: list[Any]) -> None:
        self._modules.clear()
        self.extend(entries)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(itertools.chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before the one at `index`."""
        entries = list(self)
        entries.insert(index, module)
        self._put(entries)

    def __repr__(self) -> str:
        lines: list[str] = []
        first = 0
        for text, group in itertools.groupby(map(repr, self)):
            count = len(list(group))
            last = first + count - 1
            lines.append(
                f"({first}): {text}" if count == 1 else f"({first}-{last}): {count} x {text}"
            )
            first = last + 1
        return shown(self._get_name(), [], lines)


class ModuleDict(Module):
    """Modules by key, in order of insertion.

    Args:
        modules: a dictionary of modules, or pairs of a name and a module.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Keys and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs."""
        entries = modules.items() if hasattr(modules, "items") else modules
        for key, module in entries:
            self[key] = module
