"""Containers of parameters: list, dict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from weft.eager.tensor.handle import Handle
from weft.ir.node import at_user_line
from weft.nn.module.container import position
from weft.nn.module.module import Module, shown
from weft.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


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
    """A list of parameters; tensors become parameters, other values are stored as they are.

    Args:
        values: several parameters, tensors or others.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(position("ParameterList", index, self._size)))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(position("ParameterList", index, self._size)), _as_entry(value))

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
    """Parameters by key; tensors become parameters, other values are stored as they are.

    Args:
        parameters: a dictionary, or pairs of a key and a value.
    """

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
        union = self.copy()
        union.update(other)
        return union

    def __ror__(self, other: Any) -> ParameterDict:
        union = ParameterDict(other)
        union.update(self)
        return union

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
        entry = self[key]
        del self[key]
        return entry

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
