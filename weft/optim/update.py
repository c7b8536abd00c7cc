"""The update of all parameters as one recorded call: the rule's results, and how it is applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.eager.record.call.pieces import PIECES, Piece
from weft.eager.tensor.dispatch import Recorded
from weft.ir.dtype import DType, float32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.optimizer.rule import Hyper, Rule, Update
from weft.transform.gradient import dense

Flags = tuple[tuple[str, Any], ...]


class Bucket(NamedTuple):
    """Parameters that are updated by the same rule; static, so part of the program's structure."""

    rule: Rule
    numbers: tuple[str, ...]
    parameters: int
    slots: int
    flags: Flags
    rows: bool  # whether the rule takes row-sparse gradients


def arithmetic(dtype: DType) -> DType:
    """The type that updates are computed in: at least float32."""
    return float32 if dtype.size < 4 else dtype


def _update(*values: Any, buckets: Sequence[Bucket]) -> list[Value]:
    """The new parameters and states of all buckets, in the order of the inputs."""
    results: list[Value] = []
    rest = iter(values)
    for bucket in buckets:
        hyper = {name: next(rest) for name in bucket.numbers}
        columns = [[next(rest) for _ in range(bucket.parameters)] for _ in range(2 + bucket.slots)]
        rows = [_apply(bucket, hyper, *row) for row in zip(*columns, strict=True)]
        results += [row.p for row in rows]
        for i in range(bucket.slots):
            results += [row.slots[i] for row in rows]
    return results


def _pieces(buckets: Sequence[Bucket]) -> list[Piece]:
    """The updates of single parameters."""
    found: list[Piece] = []
    first = results = 0
    for bucket in buckets:
        hyper = range(first, first + len(bucket.numbers))
        count, first = bucket.parameters, hyper.stop
        one = {"buckets": (bucket._replace(parameters=1),)}
        for i in range(count):
            xs = range(first + i, first + count * (2 + bucket.slots), count)
            ys = range(results + i, results + count * (1 + bucket.slots), count)
            found.append(Piece((*hyper, *xs), ys, one))
        first += count * (2 + bucket.slots)
        results += count * (1 + bucket.slots)
    return found


PIECES[_update] = _pieces


def _apply(bucket: Bucket, hyper: Hyper, p: Value, g: Any, *slots: Value) -> Update:
    to = arithmetic(p.dtype)
    if p.dtype.is_complex:
        pairs = [_parts(x) for x in (p, dense(g), *slots)]
        update = bucket.rule(*pairs, hyper=hyper, **dict(bucket.flags))
        return Update(_whole(update.p), tuple([_whole(x) for x in update.slots]))
    if to is p.dtype:
        return bucket.rule(p, g, *slots, hyper=hyper, **dict(bucket.flags))
    g = g.dense() if isinstance(g, RowSparse) else g
    wide, g = catalogue.cast(p, dtype=to), catalogue.cast(g, dtype=to)
    update = bucket.rule(wide, g, *slots, hyper=hyper, **dict(bucket.flags))
    return Update(catalogue.cast(update.p, dtype=p.dtype), update.slots)


def _parts(x: Value) -> Value:
    """Complex numbers as pairs of real ones, as PyTorch updates them."""
    return catalogue.stack(catalogue.real(x), catalogue.imag(x), axis=-1)


def _whole(x: Value) -> Value:
    return catalogue.complex(x[..., 0], x[..., 1])


UPDATE = Recorded(_update, differentiable=False, rows=False)
UPDATE_OF_ROWS = Recorded(_update, differentiable=False, rows=True)
DIFFERENTIABLE_UPDATE = Recorded(_update, differentiable=True, rows=False)
