"""Containers of modules or parameters: sequential, list, dict."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from weft.eager.tensor.handle import Handle
from weft.nn.module.module import Module, shown
from weft.nn.parameter import Parameter
from weft.ops.base import at_user_line


def _position(name: str, index: Any, size: int) -> int:
    """A possibly negative index as one from 0."""
    found = operator.index(index)
    if not -size <= found < size:
        raise IndexError(f"{name}: expected an index below {size}, got {found}{at_user_line()}")
    return found % size


class Sequential(Module):
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
        return keys[_position("Sequential", index, len(keys))]

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

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*self).__imul__(times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        if not isinstance(times, int) or times < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = ValueError if isinstance(times, int) else TypeError  # pyright: ignore[reportUnnecessaryIsInstance]
            raise kind(f"Sequential: expected a factor from 1, got {times!r}{at_user_line()}")
        return self.extend(list(self) * (times - 1))

    def append(self, module: Module) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules."""
        for module in modules:
            self.append(module)
        return self

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

    def pop(self, index: int = -1) -> Any:
        """Remove a module and return it."""
        found = self[index]
        del self[index]
        return found


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _key(self, index: Any) -> str:
        return str(_position("ModuleList", index, len(self)))

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

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(itertools.chain(self, other))

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

    def pop(self, index: int = -1) -> Any:
        """Remove a module and return it."""
        found = self[index]
        del self[index]
        return found


class ModuleDict(Module):
    """Modules by key, in order of insertion."""

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


def _as_entry(value: Any) -> Any:
    """Tensors become parameters; other values stay as they are."""
    if isinstance(value, Handle) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _entry_line(key: Any, value: Any) -> str:
    if isinstance(value, Parameter):
        size = "x".join(map(str, value.shape))
        return f"({key}): Parameter containing: [{value.dtype} of size {size}]"
    return f"({key}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values are stored as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_position("ParameterList", index, self._size)))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(_position("ParameterList", index, self._size)), _as_entry(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Append an entry."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Append entries.

        Raises:
            TypeError: a tensor, which `append` adds as one entry, or a value that is not iterable.
        """
        if isinstance(values, Handle) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"ParameterList: expected an iterable of entries, got {type(values).__name__}; use "
                f"append for one{at_user_line()}"
            )
        for value in list(values):
            self.append(value)
        return self

    def __repr__(self) -> str:
        lines = [_entry_line(i, value) for i, value in enumerate(self)]
        return shown(self._get_name(), [], lines)


class ParameterDict(Module):
    """Parameters by key; tensors become parameters, other values are stored as they are."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_entry(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __or__(self, other: Any) -> ParameterDict:
        found = self.copy()
        found.update(other)
        return found

    def __ror__(self, other: Any) -> ParameterDict:
        found = ParameterDict(other)
        found.update(self)
        return found

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A shallow copy."""
        return ParameterDict(self)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dict with the given keys, all with the same value."""
        return ParameterDict({key: default for key in keys})

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The entry of a key, which is set to `default` if missing."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Remove the last key and entry, and return them.

        Raises:
            KeyError: the dict is empty.
        """
        for key in reversed(self):
            return key, self.pop(key)
        raise KeyError(f"ParameterDict: there is no entry to remove{at_user_line()}")

    def get(self, key: str, default: Any = None) -> Any:
        """The entry of a key, or `default`."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Remove an entry and return it."""
        found = self[key]
        del self[key]
        return found

    def clear(self) -> None:
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Keys and entries."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The entries."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add entries from a mapping or from pairs.

        Plain dicts are sorted by key, as the order decides that of the optimizer's state.
        """
        entries = parameters.items() if hasattr(parameters, "items") else parameters
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            entries = sorted(entries, key=operator.itemgetter(0))
        for key, value in entries:
            self[key] = value

    def __repr__(self) -> str:
        lines = [_entry_line(key, value) for key, value in self.items()]
        return shown(self._get_name(), [], lines)
