"""Sparse tensors as components of queues: each is a text that holds its three arrays."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.tf1.framework.dtypes import DType, int64, string
from weft.tf1.framework.host import host_op, host_tensor
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor

Array = np.ndarray[Any, Any]


class Stored(NamedTuple):
    """What a batch of stored sparse tensors is made of.

    Attributes:
        dtype: the type of the values.
        rank: of one of them, if it is known.
    """

    dtype: DType
    rank: int | None


def stored(sparse: SparseTensor, many: bool) -> tuple[Tensor, Stored]:
    """A sparse tensor as a text; with `many`, each of its rows as one."""
    rank = sparse.dense_shape.shape.num_elements()
    kind = "SerializeManySparse" if many else "SerializeSparse"
    store = _packed_rows if many else _packed
    texts = host_tensor(kind, list(sparse.parts), store, string, [None] if many else ())
    row_rank = None if rank is None else rank - many
    return texts, Stored(sparse.dtype.base_dtype, row_rank)


def restored(texts: Tensor, info: Stored) -> SparseTensor:
    """The sparse tensor whose rows are a batch of stored ones."""
    rank = None if info.rank is None else info.rank + 1

    def join(rows: Array) -> Any:
        return _joined([_unpacked(row) for row in rows.tolist()], info)

    shapes = [[None, rank], [None], [rank]]
    types = [int64, info.dtype, int64]
    return SparseTensor(*host_op("DeserializeManySparse", [texts], join, types, shapes).outputs)


def _packed(indices: Array, values: Array, shape: Array) -> bytes:
    """Three arrays as one text: a line that describes them, then their bytes."""
    texts: list[bytes] = values.tolist() if values.dtype == object else []
    data = b"".join(texts) if texts else values.tobytes()
    lengths = [len(t) for t in texts] if values.dtype == object else None
    head = [len(indices), shape.tolist(), values.dtype.str, lengths]
    body = np.ascontiguousarray(indices, "<i8").tobytes() + data
    return json.dumps(head).encode() + b"\n" + body


def _packed_rows(indices: Array, values: Array, shape: Array) -> Sequence[bytes]:
    found: list[bytes] = []
    for row in range(int(shape[0])):
        mine = np.flatnonzero(indices[:, 0] == row)
        found.append(_packed(indices[mine][:, 1:], values[mine], shape[1:]))
    return found


def _unpacked(text: bytes) -> tuple[Array, Array, Array]:
    head, _, body = text.partition(b"\n")
    try:
        count, shape, kind, lengths = json.loads(head)
        size = 8 * count * len(shape)
        indices = np.frombuffer(body[:size], "<i8").reshape(count, len(shape))
        if lengths is None:
            return indices, np.frombuffer(body[size:], np.dtype(kind)), np.array(shape, np.int64)
        ends = np.cumsum([size, *lengths])
        values = np.empty(count, object)
        values[:] = [body[a:b] for a, b in itertools.pairwise(ends)]
    except (ValueError, TypeError) as error:
        raise DataError(f"expected a stored sparse tensor, got {text[:40]!r}") from error
    return indices, values, np.array(shape, np.int64)


def _joined(rows: Sequence[tuple[Array, Array, Array]], info: Stored) -> Any:
    rank = info.rank if info.rank is not None else len(rows[0][2]) if rows else 0
    numbers = [np.full((len(i), 1), row) for row, (i, _, _) in enumerate(rows)]
    indices = [np.hstack([n, i]) for n, (i, _, _) in zip(numbers, rows, strict=True)]
    shape = np.max([s for _, _, s in rows], axis=0) if rows else np.zeros(rank)
    kind = info.dtype.ir.numpy
    return (
        np.concatenate(indices) if rows else np.empty((0, rank + 1), np.int64),
        np.concatenate([v for _, v, _ in rows]) if rows else np.empty(0, kind),
        np.array([len(rows), *shape], np.int64),
    )
