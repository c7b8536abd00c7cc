"""Tables that steps change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError
from weft.tf1.data_flow.handle import resource
from weft.tf1.data_flow.table import LookupInterface
from weft.tf1.data_flow.table_state import TableState
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.dtypes import DType
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Operation, Tensor

__all__ = ["DenseHashTable", "MutableHashTable"]


class _Mutable(LookupInterface):
    """What tables that steps change have in common."""

    _default: Tensor
    _key_shape: tuple[int, ...] = ()
    _mismatch = ArgumentError
    state: TableState | None = None  # what `Saver` saves

    def _keep(self, checkpoint: bool) -> None:
        if checkpoint:
            self.state = TableState(self._handle, self.export(f"{self.name}_save"))

    @property
    def _value_shape(self) -> tuple[Any, ...]:
        return self._default.shape.as_dims() or ()

    def _change(self, kind: str, method: str, inputs: Callable[[], list[Tensor]], name: str) -> Any:
        with name_scope(name) as scope:
            tensors = inputs()
        return self._handle.call(kind, method, tensors, name=scope)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys; the default value of those that are not there.

        Args:
            keys: a tensor, or a sparse one.
            name: of the operation.

        Raises:
            ArgumentError: the keys have another type.
        """
        name = name or f"{self.name}_lookup_table_find"
        return self.find(keys, self._default, len(self._key_shape), self._value_shape, name)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Sets the values of keys.

        Args:
            keys: a tensor.
            values: a value for each.
            name: of the operation.

        Raises:
            ArgumentError: keys or values have another type.
        """
        return self._change(
            "LookupTableInsertV2", "insert",
            lambda: [self.keys_of(keys, self._mismatch), self._values(values)],
            name or f"{self.name}_lookup_table_insert",
        )  # fmt: skip

    def _values(self, values: Any) -> Tensor:
        if is_tensor(values) and values.dtype.base_dtype != self._value_dtype:
            text = f"Values must be dtype {self._value_dtype}, got {values.dtype}."
            raise fail(ArgumentError, f"{self.name}: Signature mismatch. {text}")
        return convert_to_tensor(values, self._value_dtype, name="values")

    @arguments_of(insert)
    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Forgets keys; of those that are not there, nothing.

        Raises:
            DTypeError: the keys have another type.
        """
        name = name or f"{self.name}_lookup_table_remove"
        return self._change("LookupTableRemoveV2", "remove", lambda: [self.keys_of(keys)], name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and their values, in the order of insertion."""
        name = name or f"{self.name}_lookup_table_export_values"
        return self.exported(self._key_shape, self._value_shape, name)


class MutableHashTable(_Mutable):
    """A table that steps change; it begins empty.

    Args:
        key_dtype: the element type of the keys.
        value_dtype: the element type of the values.
        default_value: of keys that are not there; its shape is that of all values.
        shared_name: tables of this name are the same one, in all sessions of a server.
        name: of the operation.
        checkpoint: whether `Saver` saves it with the variables.
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any,
        shared_name: str | None = None, name: str = "MutableHashTable", checkpoint: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype)
        self._default = convert_to_tensor(default_value, self._value_dtype)
        kind = "MutableHashTableOfTensorsV2" if self._value_shape else "MutableHashTableV2"
        options = {
            "key_dtype": self._key_dtype.name,
            "value_dtype": self._value_dtype.name,
            "value_shape": self._value_shape,
        }
        self._handle = resource(kind, options, shared_name, name)
        self._keep(checkpoint)


@arguments_of(MutableHashTable)
class DenseHashTable(_Mutable):
    """A table that steps change, with two keys that nobody may use; keys may be vectors.

    Args:
        empty_key: a key that is not used.
        deleted_key: another one.
        initial_num_buckets: accepted; the table grows as it needs.

    Raises:
        ArgumentError: the keys are known only at execution.
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any,
        deleted_key: Any, initial_num_buckets: int | None = None, shared_name: str | None = None,
        name: str = "MutableDenseHashTable", checkpoint: bool = True,
    ) -> None:  # fmt: skip
        del initial_num_buckets
        super().__init__(key_dtype, value_dtype)
        self._default = convert_to_tensor(default_value, self._value_dtype, name="default_value")
        unused = [_known(k, self._key_dtype) for k in (empty_key, deleted_key)]
        if unused[0].shape != unused[1].shape:
            text = f"got shapes: {list(unused[0].shape)} and {list(unused[1].shape)}"
            raise fail(ArgumentError, f"Empty and deleted keys must have same shape, {text}")
        self._key_shape = unused[0].shape
        options = {
            "key_dtype": self._key_dtype.name,
            "value_dtype": self._value_dtype.name,
            "value_shape": self._value_shape,
            "key_shape": self._key_shape,
            "empty_key": _plain(unused[0].tolist()),
            "deleted_key": _plain(unused[1].tolist()),
        }
        self._handle = resource("MutableDenseHashTableV2", options, shared_name, name)
        self._keep(checkpoint)

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The same as `insert`."""
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Operation:
        """The same as `remove`."""
        return self.remove(keys, name)


def _known(key: Any, dtype: DType) -> Any:
    found = static_value(convert_to_tensor(key, dtype))
    if found is None:
        raise fail(ArgumentError, f"DenseHashTable: expected keys that are known, got {key!r}")
    return found


def _plain(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
