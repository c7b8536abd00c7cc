"""`tf.nn.embedding_lookup`: rows of a table, which may lie in parts on several devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import ops
from weft.errors import ArgumentError, GraphError
from weft.ir.node import Value
from weft.tf1 import reduction
from weft.tf1.control import dependency
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, require_kind
from weft.tf1.framework.default_graph import colocate_with, device
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.variable.partitioned import PartitionedVariable

__all__ = ["embedding_lookup"]


def embedding_lookup(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None,
    validate_indices: bool = True, max_norm: float | None = None,
) -> Tensor:  # fmt: skip
    """The rows of a table at `ids`; the gradient stays row-sparse.

    Args:
        params: the table, or a list of its parts along the first axis, or a `PartitionedVariable`.
            Each part's rows are looked up on its device, so that only they travel.
        ids: integers of any shape.
        partition_strategy: where the rows of a table in parts are: `"mod"`, id i in part i % parts,
            or `"div"`, each part a range of ids, as `get_variable` divides with a partitioner.
        name: the scope of the operations.
        validate_indices: accepted; indices are always checked.
        max_norm: longer rows are scaled down to this norm.

    Raises:
        OutOfRangeError: at execution, if there is no row of an id.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     parts = [tf.constant([[0.0], [2.0], [4.0]]), tf.constant([[1.0], [3.0]])]
        ...     session.run(tf.nn.embedding_lookup(parts, [3, 0, 4])).tolist()
        [[3.0], [0.0], [4.0]]
    """
    del validate_indices
    return looked_up(params, ids, partition_strategy, name or "embedding_lookup", max_norm)


def tables_of(params: Any) -> list[Any]:
    """The parts of a table as a list.

    Raises:
        GraphError: there are none.
    """
    if params is None or (isinstance(params, list | tuple) and not params):
        raise fail(GraphError, f"embedding_lookup: expected a table or its parts, got {params!r}")
    several = isinstance(params, list | tuple | PartitionedVariable)
    return list(params) if several else [params]


def looked_up(
    params: Any, ids: Any, strategy: str, name: str, max_norm: float | None, unique: bool = False,
) -> Tensor:  # fmt: skip
    """The rows at `ids`; with `unique`, a row of a table in parts is fetched once."""
    if strategy not in ("mod", "div"):
        text = f"embedding_lookup: expected partition_strategy 'mod' or 'div', got {strategy!r}"
        raise fail(ArgumentError, text)
    tables = tables_of(params)
    with name_scope(name, None, [*tables, ids]) as scope:
        parts = [convert_to_tensor(t, name="params") for t in tables]
        where = convert_to_tensor(ids, name="ids")
        require_kind("embedding_lookup", where, lambda d: d.is_integer, "integer ids")
        if len(parts) == 1:
            found = dependency.identity(_rows(parts[0], where, _owner(tables[0], parts[0]), scope))
        else:
            found = _from_parts(parts, where, tables, strategy, unique, scope)
        return clipped(found, where, max_norm)


def clipped(rows: Tensor, ids: Tensor, max_norm: float | None) -> Tensor:
    """Rows whose norm is at most `max_norm`."""
    if max_norm is None:
        return rows
    rank = rows.shape.ndims
    axes = list(range(ids.shape.ndims or 0, 1 if rank is None else rank))
    norms = arithmetic.sqrt(reduction.reduce_sum(rows * rows, axes, keepdims=True))
    return rows * (max_norm / arithmetic.maximum(norms, max_norm))


def _rows(part: Tensor, ids: Tensor, owner: Any, name: str = "GatherV2") -> Tensor:
    with device(None), colocate_with(owner):
        return emit("GatherV2", [part, ids], "gather", name=name)


def _owner(table: Any, part: Tensor) -> Any:
    """What the rows of a part are gathered beside: its variable, or the tensor itself."""
    return table if is_tensor(table) else part


def _from_parts(
    parts: list[Tensor], ids: Tensor, owners: list[Any], strategy: str, unique: bool, scope: str,
) -> Tensor:  # fmt: skip
    rows = None if strategy == "mod" else _count(parts)
    divided = get_default_graph().emit(
        "DynamicPartition", [ids], _divide(len(parts), rows, unique), name="DynamicPartition"
    )
    *wanted, places = divided.outputs
    homes = map(_owner, owners, parts)
    found = [_rows(*each) for each in zip(parts, wanted, homes, strict=True)]

    def stitch(where: Value, *rows: Value) -> Value:
        return ops.gather(ops.concatenate(*rows, axis=0), where)

    return emit("ParallelDynamicStitch", [places, *found], stitch, name=scope)


def _divide(parts: int, rows: int | None, unique: bool) -> Callable[[Value], Any]:
    options: Any = {"parts": parts, "rows": rows, "unique": unique}
    return lambda ids: ops.partition_ids.all(
        ids, sizes=ops.partition_sizes.all(ids, **options)[0], **options
    )


def _count(parts: list[Tensor]) -> int:
    sizes = [part.shape.as_list()[0] for part in parts]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        text = f"embedding_lookup: 'div' needs parts of known sizes, got {sizes}"
        raise fail(GraphError, text)
    return sum(known)
