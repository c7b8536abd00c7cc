"""Tables from keys to values: filled once, or changed by steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.documentation import Reads
from weft.errors import DTypeError, WeftError
from weft.tf1.data_flow.handle import Handle, resource
from weft.tf1.data_flow.table_initializer import TableInitializerBase, Typed
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype, int64, string
from weft.tf1.framework.graph import control_dependencies, fail, get_default_graph, name_scope
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Operation, Tensor

__all__ = [
    "HashTable", "LookupInterface", "StaticHashTable", "initialize_all_tables",
    "tables_initializer",
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


class LookupInterface(Typed):
    """What all tables have.

    Args:
        key_dtype: the element type of the keys.
        value_dtype: the element type of the values.
    """

    _handle: Handle
    _mismatch: type[WeftError] = DTypeError  # of lookups with keys of another type

    resource_handle = Reads[Any]("_handle.tensor", "The reference of the table.")

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

    def keys_of(self, keys: Any, error: type[WeftError] = DTypeError) -> Tensor:
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
            tensor = self.keys_of(given, self._mismatch)
        batch = tensor.shape.as_dims()
        shape = None if batch is None else (*batch[: len(batch) - key_rank], *value_shape)
        if (
            get_default_graph().capture is not None
        ):  # a dataset's function, whose graph has no table
            found = self._found_in_contents(tensor, default, shape, scope)
        else:
            found = self._handle.tensor_of(
                "LookupTableFindV2", "lookup", self._value_dtype, shape, scope, [tensor, default]
            )
        if not isinstance(keys, SparseTensor):
            return found
        return SparseTensor(keys.indices, found, keys.dense_shape)

    def _found_in_contents(self, keys: Tensor, default: Tensor, shape: Any, scope: str) -> Tensor:
        """The values of keys by the table's contents as they are when an iterator starts."""
        graph: Any = self._handle.tensor.graph
        with graph.as_default(), control_dependencies(None):
            contents = self.exported((), (), f"{self.name}_Export")
        held: list[Any] = [None, {}]  # the array of keys, and the places of keys in it

        def find(x: Any, missing: Any, names: Any, values: Any) -> Any:
            if held[0] is not names:
                held[:] = [names, {key: i for i, key in enumerate(names.tolist())}]
            at = [held[1].get(key, -1) for key in np.ravel(x).tolist()]
            others = np.ravel(np.broadcast_to(missing, x.shape))
            rows = [others[n] if i < 0 else values[i] for n, i in enumerate(at)]
            kind = object if self._value_dtype is string else self._value_dtype.as_numpy_dtype
            return np.array(rows, kind).reshape(x.shape)

        return host_tensor(
            "LookupTableFindV2", [keys, default, *contents], find, self._value_dtype, shape, scope
        )

    def exported(
        self, key_shape: Sequence[Any], value_shape: Sequence[Any], name: str
    ) -> tuple[Tensor, Tensor]:
        """All keys and their values, whose shapes are these."""
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

    default_value = Reads[Tensor]("_default", "The value of keys that are not there.")
    initializer = Reads[Operation]("_init", "Fills the table.")

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
        return self.exported((), (), name or f"{self.name}_Export")


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

    init = Reads[Operation]("initializer", "Fills the table.")
