"""Tables in memory: from keys to values, filled once or changed by steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from weft.errors import ArgumentError, UninitializedError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Array, Cancellation, Resource, register
from weft.resource.component import brackets, numpy_type
from weft.resource.vocabulary import Vocabulary

_ROOM: Final = 16  # rows at first; doubled when they are full


class Rows:
    """Values of keys, as rows of one array."""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.places: dict[Any, int] = {}
        self._free: list[int] = []
        self._values: Array = np.empty((_ROOM, *shape), dtype)

    def __len__(self) -> int:
        return len(self.places)

    def find(self, keys: Sequence[Any], default: Array) -> Array:
        """The values of keys, `default` (one, or one a key) for those that are not there."""
        get = self.places.get
        places = np.array([get(key, -1) for key in keys], np.intp)
        missing = places < 0
        found = self._values[places]  # pyright: ignore[reportUnknownVariableType]
        if missing.any():
            each = default.ndim == self._values.ndim
            found[missing] = default[missing] if each else default
        return found

    def insert(self, keys: Sequence[Any], values: Array) -> None:
        """Set the values of keys; the last counts of one that occurs several times."""
        for key in keys:
            if key not in self.places:
                self.places[key] = self._free.pop() if self._free else len(self.places)
        self._grow(len(self.places) + len(self._free))
        for key, value in zip(keys, values, strict=True):
            self._values[self.places[key]] = value

    def _grow(self, needed: int) -> None:
        room = len(self._values)
        if needed > room:
            more = np.empty((max(needed, 2 * room) - room, *self._values.shape[1:]),
                            self._values.dtype)  # fmt: skip
            self._values = np.concatenate([self._values, more])

    def remove(self, keys: Sequence[Any]) -> None:
        """Forget keys."""
        for key in keys:
            place = self.places.pop(key, None)
            if place is not None:
                self._free.append(place)

    def export(self) -> tuple[list[Any], Array]:
        """All keys and their values, in the order of insertion."""
        return list(self.places), self._values[list(self.places.values())]


Method = Callable[[Sequence[Array], Mapping[str, Any]], list[Array]]


class Table(Resource):
    """Values of one type and shape by keys of one type."""

    family = what = "table"
    title: ClassVar[str]
    words: ClassVar[Mapping[str, str]] = {
        "key_dtype": "key dtype",
        "value_dtype": "value dtype",
        "value_shape": "value shape",
    }

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self.key_dtype: Final = numpy_type(spec.option("key_dtype"))
        self.value_dtype: Final = numpy_type(spec.option("value_dtype"))
        self.value_shape: Final[tuple[int, ...]] = spec.option("value_shape", ())
        self.key_shape: Final[tuple[int, ...]] = spec.option("key_shape", ())
        self.lock = threading.Lock()
        self.rows = Rows(self.value_dtype, self.value_shape)
        self.methods: dict[str, Method] = {
            "lookup": self._lookup,
            "size": lambda *_: [np.array(len(self.rows), np.int64)],
            "export": lambda *_: self._export(),
        }

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Look up, change or tell about the table; never waits."""
        del cancel
        found = self.methods.get(method)
        if found is None:
            known = ", ".join(self.methods)
            raise ArgumentError(f"{self.title}: expected one of {known}, got {method!r}")
        with self.lock:
            return found(inputs, options)

    def _lookup(self, inputs: Sequence[Array], options: Mapping[str, Any]) -> list[Array]:
        del options
        keys, default = inputs
        shape = (*self._batch_shape(keys), *self.value_shape)
        flat = self.keys(keys)
        if default.ndim > len(self.value_shape):
            default = default.reshape(len(flat), *self.value_shape)
        elif default.shape != self.value_shape:
            raise ArgumentError(
                f"Expected shape {brackets(self.value_shape)} for default value, got "
                f"{brackets(default.shape)}"
            )
        return [self.rows.find(flat, default).reshape(shape)]

    def _export(self) -> list[Array]:
        names, values = self.rows.export()
        keys = np.empty((len(names), *self.key_shape), self.key_dtype)
        for row, name in enumerate(names):
            keys[row] = name
        return [keys, values]

    def keys(self, keys: Array) -> list[Any]:
        """Keys as Python values.

        Raises:
            ArgumentError: their type is wrong.
        """
        if keys.dtype != self.key_dtype:
            text = f"expected keys of type {self.spec.option('key_dtype')}, got {keys.dtype}"
            raise ArgumentError(f"{self.title}: {text}")
        if not self.key_shape:
            return keys.ravel().tolist()
        self._batch_shape(keys)
        return [tuple(key) for key in keys.reshape(-1, *self.key_shape).tolist()]

    def _batch_shape(self, keys: Array) -> tuple[int, ...]:
        ends = keys.ndim - len(self.key_shape)
        if ends < 0 or keys.shape[ends:] != self.key_shape:
            expected = f"to end with {brackets(self.key_shape)}"
            raise ArgumentError(f"Input key shape {brackets(keys.shape)} is expected {expected}")
        return keys.shape[:ends]

    def values(self, keys: Array, values: Array) -> Array:
        """Values as rows.

        Raises:
            ArgumentError: type or shape are wrong.
        """
        expected = (*self._batch_shape(keys), *self.value_shape)
        if values.dtype != self.value_dtype:
            text = f"expected values of type {self.spec.option('value_dtype')}, got {values.dtype}"
            raise ArgumentError(f"{self.title}: {text}")
        if values.shape != expected:
            raise ArgumentError(
                f"Expected shape {brackets(expected)} for value, got {brackets(values.shape)}"
            )
        return values.reshape(-1, *self.value_shape)

    def close(self) -> None:
        """Nobody waits for a table."""


@register("HashTableV2")
class HashTable(Table):
    """A table that is filled once."""

    title = "HashTable"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._filled = False
        self.methods |= {
            "initialize": lambda xs, _: self._fill(self.keys(xs[0]), self.values(*xs)),
            "initialize_from_text_file": self._fill_from_file,
        }

    def _lookup(self, inputs: Sequence[Array], options: Mapping[str, Any]) -> list[Array]:
        if not self._filled:
            raise UninitializedError(f"Table not initialized: {self.name}")
        return super()._lookup(inputs, options)

    def _fill(self, keys: Sequence[Any], values: Array) -> list[Array]:
        if self._filled:
            if len(keys) != len(self.rows):
                raise UninitializedError("Table was already initialized with different data.")
            return []
        if not keys:
            raise ArgumentError(f"HashTable '{self.name}': keys and values cannot be empty tensors")
        rows = Rows(self.value_dtype, self.value_shape)
        seen: dict[Any, Any] = {}
        for key, value in zip(keys, values.tolist(), strict=True):
            if seen.setdefault(key, value) != value:
                text = f"Key {_text(key)} has {_text(seen[key])}"
                raise UninitializedError(
                    f"HashTable has different value for same key. {text} and trying to add "
                    f"value {_text(value)}"
                )
        rows.insert(keys, values)
        self.rows, self._filled = rows, True
        return []

    def _fill_from_file(self, inputs: Sequence[Array], options: Mapping[str, Any]) -> list[Array]:
        if not self._filled:
            types = self.spec.option("key_dtype"), self.spec.option("value_dtype")
            keys, values = Vocabulary(_text(inputs[0][()]), types, **options).read()
            self._fill(self.keys(keys), values)
        return []


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@register("MutableHashTableV2", "MutableHashTableOfTensorsV2")
class MutableHashTable(Table):
    """A table that steps change."""

    title = "MutableHashTable"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        if len(self.value_shape) > 1:
            text = f"Default value must be a vector, got shape {brackets(self.value_shape)}"
            raise ArgumentError(text)
        self.methods |= {
            "insert": lambda xs, _: self._insert(*xs),
            "remove": lambda xs, _: self._remove(xs[0]),
            "import": lambda xs, _: self._import(*xs),
        }

    def _insert(self, keys: Array, values: Array) -> list[Array]:
        self.rows.insert(self.keys(keys), self.values(keys, values))
        return []

    def _remove(self, keys: Array) -> list[Array]:
        self.rows.remove(self.keys(keys))
        return []

    def _import(self, keys: Array, values: Array) -> list[Array]:
        names, rows = self.keys(keys), self.values(keys, values)
        self.rows = Rows(self.value_dtype, self.value_shape)
        self.rows.insert(names, rows)
        return []


@register("MutableDenseHashTableV2")
class MutableDenseHashTable(MutableHashTable):
    """A table with two keys that nobody may use, as TensorFlow's open addressing asks for."""

    title = "MutableDenseHashTable"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._reserved: Final = {
            spec.option("empty_key"): "empty_key",
            spec.option("deleted_key"): "deleted_key",
        }
        if len(self._reserved) < 2:
            raise ArgumentError("Empty and deleted keys cannot be equal")

    def keys(self, keys: Array) -> list[Any]:
        """Keys as Python values; refuses the reserved ones."""
        found = super().keys(keys)
        for key, name in self._reserved.items():
            if key in found:
                raise ArgumentError(f"Using the {name} as a table key is not allowed")
        return found
