"""Tables from keys to values: filled once, or changed by steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError, DTypeError, WeftError
from weft.tf1.data_flow.handle import Handle, resource
from weft.tf1.data_flow.table_initializer import TableInitializerBase
from weft.tf1.data_flow.table_state import TableState
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.dtypes import DType, as_dtype, int64
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Operation, Tensor

__all__ = [
    "DenseHashTable", "HashTable", "LookupInterface", "MutableHashTable", "StaticHashTable",
    "initialize_all_tables", "tables_initializer",
]  # fmt: skip


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the default graph.

    Args:
        name: of the operation.
    """
    graph = get_default_graph()
    fill: Sequence[Operation] = graph.get_collection(GraphKeys.TABLE_INITIALIZERS)
    with graph.control_dependencies(fill):
        return graph.emit("NoOp", (), "group", name=name)


initialize_all_tables = tables_initializer


class LookupInterface:
    """What all tables have.

    Args:
        key_dtype: the element type of the keys.
        value_dtype: the element type of the values.
    """

    _handle: Handle
    _mismatch: type[WeftError] = DTypeError  # of lookups with keys of another type

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        """The element type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The element type of the values."""
        return self._value_dtype

    @property
    def resource_handle(self) -> Any:
        """The reference of the table."""
        return self._handle.tensor

    @property
    def name(self) -> str:
        """The name of the table's operation, without its scope."""
        return self._handle.tensor.op.name.split("/")[-1]

    def size(self, name: str | None = None) -> Tensor:
        """The number of keys."""
        name = name or f"{self.name}_Size"
        return self._handle.tensor_of("LookupTableSizeV2", "size", int64, name=name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor, or a sparse one.
            name: of the operation.
        """
        raise NotImplementedError

    def _keys(self, keys: Any, error: type[WeftError] = DTypeError) -> Tensor:
        """Keys as a tensor.

        Raises:
            WeftError: of this class, if they have another type than the table's.
        """
        given = getattr(keys, "dtype", None)
        kind = None if given is None else as_dtype(given).base_dtype
        if kind is not None and kind != self._key_dtype:
            text = f"Keys must be dtype {self._key_dtype}, got {kind}."
            raise fail(error, f"{self.name}: Signature mismatch. {text}")
        return convert_to_tensor(keys, self._key_dtype, name="keys")

    def find(
        self, keys: Any, default: Tensor, key_rank: int, value_shape: Sequence[Any],
        name: str | None,
    ) -> Any:  # fmt: skip
        """The values of keys, `default` (one, or one a key) for those that are not there."""
        given = keys.values if isinstance(keys, SparseTensor) else keys
        with name_scope(name, f"{self.name}_Lookup") as scope:
            tensor = self._keys(given, self._mismatch)
        batch = tensor.shape.as_dims()
        shape = None if batch is None else (*batch[: len(batch) - key_rank], *value_shape)
        found = self._handle.tensor_of(
            "LookupTableFindV2", "lookup", self._value_dtype, shape, scope, [tensor, default]
        )
        if not isinstance(keys, SparseTensor):
            return found
        return SparseTensor(keys.indices, found, keys.dense_shape)

    def _exported(
        self, key_shape: Sequence[Any], value_shape: Sequence[Any], name: str
    ) -> tuple[Tensor, Tensor]:
        types = [self._key_dtype, self._value_dtype]
        shapes = [[None, *key_shape], [None, *value_shape]]
        keys, values = self._handle.call(
            "LookupTableExportV2", "export", (), types, shapes, name
        ).outputs
        return keys, values


class StaticHashTable(LookupInterface):
    """A table that its initializer fills, once.

    Args:
        initializer: what fills it, such as `KeyValueTensorInitializer`.
        default_value: of keys that are not there.
        name: of the operation.
        shared_name: tables of this name are the same one, in all sessions of a server; by default
            those that are filled from the same file.
    """

    def __init__(
        self, initializer: TableInitializerBase, default_value: Any, name: str | None = None,
        shared_name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default = convert_to_tensor(default_value, self._value_dtype)
        self._default.shape.assert_has_rank(0)
        options = {"key_dtype": self._key_dtype.name, "value_dtype": self._value_dtype.name}
        shared = shared_name or initializer.shared_name
        self._handle = resource("HashTableV2", options, shared, name or "hash_table")
        self._init = initializer.initialize(self._handle, self)

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return self._default

    @property
    def initializer(self) -> Operation:
        """Fills the table."""
        return self._init

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor, or a sparse one.
            name: of the operation.

        Raises:
            DTypeError: the keys have another type.
            FailedPreconditionError: at execution, if the table is not filled.
        """
        return self.find(keys, self._default, 0, (), name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and their values."""
        return self._exported((), (), name or f"{self.name}_Export")


class HashTable(StaticHashTable):
    """A table that its initializer fills, once; as `tf.contrib.lookup` has it.

    Args:
        initializer: what fills it, such as `KeyValueTensorInitializer`.
        default_value: of keys that are not there.
        shared_name: tables of this name are the same one, in all sessions of a server.
        name: of the operation.
    """

    def __init__(
        self, initializer: TableInitializerBase, default_value: Any,
        shared_name: str | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(initializer, default_value, name, shared_name)

    @property
    def init(self) -> Operation:
        """Fills the table."""
        return self.initializer


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
            lambda: [self._keys(keys, self._mismatch), self._values(values)],
            name or f"{self.name}_lookup_table_insert",
        )  # fmt: skip

    def _values(self, values: Any) -> Tensor:
        if is_tensor(values) and values.dtype.base_dtype != self._value_dtype:
            text = f"Values must be dtype {self._value_dtype}, got {values.dtype}."
            raise fail(ArgumentError, f"{self.name}: Signature mismatch. {text}")
        return convert_to_tensor(values, self._value_dtype, name="values")

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Forgets keys; of those that are not there, nothing.

        Args:
            keys: a tensor.
            name: of the operation.

        Raises:
            DTypeError: the keys have another type.
        """
        name = name or f"{self.name}_lookup_table_remove"
        return self._change("LookupTableRemoveV2", "remove", lambda: [self._keys(keys)], name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and their values, in the order of insertion."""
        name = name or f"{self.name}_lookup_table_export_values"
        return self._exported(self._key_shape, self._value_shape, name)


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
