"""`EmbeddingTable`: an embedding that is a hash table, as operations of a graph."""

from __future__ import annotations

import json
import math
from typing import Any

from weft.documentation import Reads
from weft.errors import ArgumentError
from weft.ir.dtype import bool_, float32, int64
from weft.table import resource as kinds
from weft.table.embedding_table import TableOptions
from weft.table.first_row import FirstRow, Uniform
from weft.table.optimizer import SGD, RowOptimizer
from weft.tf1.control.dependency import control_dependencies
from weft.tf1.control.gradient import gradients
from weft.tf1.data_flow.handle import resource
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.shaping.arrangement import concat, reshape

__all__ = ["EmbeddingTable"]


class EmbeddingTable:
    """Rows by id, made when an id is looked up first, on the device where the table is made.

    Args:
        width: numbers of a row.
        optimizer: how rows are updated: `weft.table.SGD`, `Adagrad`, `Adam` or `FTRL`.
        first: what rows contain at first: `weft.table.Uniform`, `Normal`, `TruncatedNormal` or
            `Constant`.
        seed: of random first rows: a row depends on its id and this alone.
        admit: how often an id must be looked up before it gets a row; until then its row is zeros.
        expire: ids that were not looked up for so many updates are dropped; 0 for never.
        shared_name: tables of this name are the same one, in all sessions of a server.
        name: of the operation.

    Example:
        >>> import weft.tf1 as tf
        >>> from weft.table import SGD, Constant
        >>> with tf.Graph().as_default():
        ...     table = EmbeddingTable(2, SGD(1.0), Constant(3.0))
        ...     rows = table.lookup([5, 1 << 40, 5])
        ...     train = table.minimize(tf.reduce_sum(rows))
        ...     with tf.Session() as session:
        ...         _ = session.run(train)
        ...         print(session.run(rows).tolist(), session.run(table.size()))
        [[1.0, 1.0], [2.0, 2.0], [1.0, 1.0]] 2
    """

    def __init__(
        self, width: int, optimizer: RowOptimizer | None = None, first: FirstRow | None = None,
        seed: int = 0, admit: int = 1, expire: int = 0, shared_name: str | None = None,
        name: str = "EmbeddingTable",
    ) -> None:  # fmt: skip
        self.options = TableOptions(
            width, optimizer or SGD(), first or Uniform(), seed, admit, expire
        )
        text = json.dumps(self.options.record(), sort_keys=True)
        self._handle = resource(kinds.KIND, {"table": text}, shared_name, name)
        self._lookups: list[tuple[Tensor, Tensor]] = []

    name = Reads[str]("_handle.spec.name", "Of the table.")

    def lookup(self, ids: Any, insert: bool = True, name: str | None = None) -> Tensor:
        """The rows of ids, float32, (..., width).

        Args:
            ids: integers of any shape.
            insert: whether ids are counted, and get rows when they are seen first; else the table
                stays as it is, and missing rows are zeros.
            name: of the operation.
        """
        flat = self._ids(ids)
        dims = flat.get_shape().as_dims()
        shape = None if dims is None else (*dims, self.options.width)
        op = self._handle.call(
            "EmbeddingTableLookup", "lookup", [flat], [float32], [shape], name,
            options={"insert": insert},
        )  # fmt: skip
        rows = op.outputs[0]
        self._lookups.append((flat, rows))
        return rows

    def update(
        self, ids: Any, gradients: Any, lr: Any = None, name: str | None = None
    ) -> Operation:  # fmt: skip
        """Updates rows by gradients, those of equal ids summed up in their order.

        Args:
            ids: integers of any shape.
            gradients: float32, (..., width).
            lr: the learning rate, by default the optimizer's.
            name: of the operation.
        """
        rate = convert_to_tensor(math.nan if lr is None else lr, dtypes.float32)
        inputs = [self._ids(ids), convert_to_tensor(gradients, dtypes.float32), rate]
        return self._handle.call("EmbeddingTableUpdate", "update", inputs, [int64], [()], name)

    def minimize(self, loss: Any, lr: Any = None, name: str | None = None) -> Operation:
        """Updates the rows of all lookups so far by the gradients of a loss.

        Args:
            loss: what is minimized.
            lr: the learning rate, by default the optimizer's.
            name: of the operation.
        """
        width = self.options.width
        with name_scope(name, f"{self.name}_minimize"):
            found = gradients([loss], [rows for _, rows in self._lookups])
            pairs = [
                (i, g) for (i, _), g in zip(self._lookups, found, strict=True) if g is not None
            ]
            if not pairs:
                raise fail(
                    ArgumentError,
                    f"{self.name}: expected a loss that depends on a lookup, got {loss}",
                )
            ids = concat([reshape(i, [-1]) for i, _ in pairs], 0)
            joint = concat([reshape(g, [-1, width]) for _, g in pairs], 0)
            # A gradient that does not depend on the rows would not have them made
            with control_dependencies([rows for _, rows in self._lookups]):
                return self.update(ids, joint, lr)

    def size(self, name: str | None = None) -> Tensor:
        """How many ids have been seen, int64.

        Args:
            name: of the operation.
        """
        return self._handle.tensor_of("EmbeddingTableSize", "size", int64, (), name)

    def export(self, name: str | None = None) -> tuple[Tensor, ...]:
        """All that the table has, for `restore`.

        Args:
            name: of the operation.

        Returns:
            Ids, ascending; rows; the optimizer's slots; how often and after how many updates ids
            were looked up; which have rows; and the number of updates.
        """
        width, slots = self.options.width, len(self.options.optimizer.slots)
        types = [int64, float32, float32, int64, int64, bool_, int64]
        shapes = [(None,), (None, width), (None, slots, width), (None,), (None,), (None,), ()]
        op = self._handle.call("EmbeddingTableExport", "export", [], types, shapes, name)
        return tuple(op.outputs)

    def restore(self, exported: Any, name: str | None = None) -> Operation:
        """Replaces what the table has.

        Args:
            exported: what `export` has given: tensors or arrays.
            name: of the operation.
        """
        inputs = [convert_to_tensor(x) for x in exported]
        return self._handle.call("EmbeddingTableImport", "import", inputs, name=name)

    def _ids(self, ids: Any) -> Tensor:
        if is_tensor(ids):
            return ids if ids.dtype.base_dtype == dtypes.int64 else cast(ids, dtypes.int64)
        return convert_to_tensor(ids, dtypes.int64, name="ids")
