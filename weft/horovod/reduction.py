"""Horovod's collectives on arrays: scaled reductions, gathers and exchanges of any lengths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np

from weft.collectives.elements import kind
from weft.collectives.reduce_op import ReduceOp
from weft.errors import ArgumentError, DistributedError, RanksDifferError, ShapeError
from weft.horovod.adasum import adasum
from weft.horovod.compression import Compressor, NoneCompressor
from weft.ir.dtype import DType, as_dtype
from weft.ops.communication.collective import reduced
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group


class _Adasum(Enum):
    """Adasum, in addition to the reductions of `weft.distributed`."""

    ADASUM = "adasum"


Adasum: Final = _Adasum.ADASUM
Op = ReduceOp | _Adasum


def reduction_of(op: Any, average: bool | None, name: str = "allreduce") -> Op:
    """The reduction that Horovod's arguments `op` and `average` name.

    Raises:
        ArgumentError: both are given, or `op` is not a reduction.
    """
    if average is not None and op is not None:
        raise ArgumentError.here(f"{name}: expected op or average, got both")
    chosen = (ReduceOp.SUM if average is False else ReduceOp.AVG) if op is None else op
    if not isinstance(chosen, ReduceOp | _Adasum):
        text = f"{name}: expected hvd.Average, hvd.Sum, hvd.Adasum, ..., got {op!r}"
        raise ArgumentError.here(text)
    return chosen


@dataclass(frozen=True)
class Reduction:
    """How arrays are reduced.

    Attributes:
        prescale, postscale: factors before and after the reduction.
        compression: of the tensors of graphs.
    """

    op: Op
    prescale: float = 1.0
    postscale: float = 1.0
    compression: type[Compressor] = NoneCompressor

    def all(self, group: Group, xs: Sequence[Array]) -> list[Array]:
        """Reduce arrays over the group; arrays of one type are sent together."""
        sent = [self.scaled(x, self.prescale) for x in xs]
        if isinstance(self.op, ReduceOp):
            ys = self._plain(group, sent, self.op)
        else:
            ys = [adasum(group, x) for x in sent]
        return [self.scaled(y, self.postscale) for y in ys]

    def _plain(self, group: Group, xs: Sequence[Array], op: ReduceOp) -> list[Array]:
        """Means of integers are quotients of sums."""
        whole = op is ReduceOp.AVG and any([not as_dtype(x.dtype).is_inexact for x in xs])
        sums = list(reduced(group, xs, "sum" if whole else op.value))
        return [quotient(y, group.size) for y in sums] if whole else sums

    def on_integers(self, dtypes: Sequence[DType]) -> bool:
        """Whether this divides or scales integers, which only works on arrays."""
        divides = self.op is ReduceOp.AVG or (self.prescale, self.postscale) != (1.0, 1.0)
        return divides and any([not dtype.is_inexact for dtype in dtypes])

    def scaled(self, x: Array, factor: float) -> Array:
        """An array times a factor, of its own type; integers are rounded towards zero."""
        if factor == 1.0:
            return x
        wide = x.astype(np.float32) if as_dtype(x.dtype).is_floating and x.itemsize == 2 else x
        return (wide * factor).astype(x.dtype)


def quotient(x: Array, divisor: int) -> Array:
    """An array divided by a number, of its own type; integers are rounded towards zero.

    Example:
        >>> quotient(np.array([-3, 3]), 2).tolist()
        [-1, 1]
    """
    if as_dtype(x.dtype).is_inexact:
        return x / x.dtype.type(divisor)
    return (
        np.sign(x) * (np.abs(x) // x.dtype.type(divisor)) if x.dtype.kind == "i" else x // divisor
    )


class Gathered(NamedTuple):
    """All ranks' rows, and the number of rows of each rank."""

    whole: Array
    rows: list[int]

    def own(self, group: Group) -> tuple[int, int]:
        """The start and the end of this rank's rows."""
        return _place(self.rows, group)

    def own_of_counts(self, group: Group) -> tuple[int, int]:
        """The same, if the gathered values are the numbers of rows."""
        return _place(self.whole.tolist(), group)


def _place(rows: Sequence[int], group: Group) -> tuple[int, int]:
    first = sum(rows[: group.index])
    return first, first + rows[group.index]


def gather(group: Group, x: Array) -> Gathered:
    """Concatenate all ranks' arrays along their first dimension, whose length may differ.

    Raises:
        ShapeError: other dimensions or types differ.
    """
    if not x.ndim:
        raise ShapeError.here("allgather: expected a first dimension, got a scalar")
    told = json.dumps([as_dtype(x.dtype).name, x.shape]).encode()
    kinds = [json.loads(d) for d in collective.all_gather_bytes(group, told, "allgather: shapes")]
    for member, each in enumerate(kinds):
        if (each[0], each[1][1:]) != (kinds[0][0], kinds[0][1][1:]):
            raise RanksDifferError.here(
                "allgather: expected tensors that differ in their first dimension alone, got "
                f"{_shown(kinds[0])} on rank {group.ranks[0]} and {_shown(each)} on rank "
                f"{group.ranks[member]}"
            )
    rows = [int(each[1][0]) for each in kinds]
    out = np.empty((sum(rows), *x.shape[1:]), x.dtype)
    parts = np.split(out, np.cumsum(rows)[:-1])
    what = f"allgather of {kinds[0][0]}{rows} rows of {kinds[0][1][1:]}"
    collective.all_gather(group, x, parts, what)
    return Gathered(out, rows)


def _shown(each: Any) -> str:
    return f"{each[0]}[{','.join(map(str, each[1]))}]"


def exchange(group: Group, x: Array, splits: Sequence[int] | None) -> tuple[Array, list[int]]:
    """The rows from each rank, and their numbers; `splits[i]` rows are sent to rank i.

    Raises:
        ShapeError: `splits` does not have one number per rank, or does not add up to the rows.
    """
    rows = x.shape[0] if x.ndim else 0
    if splits is None and rows % group.size:
        raise ShapeError.here(
            f"alltoall: expected rows in {group.size} equal parts, got {rows}; or pass splits"
        )
    shares = [rows // group.size] * group.size if splits is None else list(splits)
    if len(shares) != group.size or sum(shares) != rows or min(shares) < 0:
        raise ShapeError.here(
            f"alltoall: expected {group.size} splits that add up to {rows} rows, got {shares}"
        )
    taken = list(np.zeros((group.size, 1), np.int64))
    collective.all_to_all(group, [np.array([n]) for n in shares], taken, "alltoall: splits")
    counts = [int(n[0]) for n in taken]
    out = np.empty((sum(counts), *x.shape[1:]), x.dtype)
    xs, outs = (np.split(a, np.cumsum(n)[:-1]) for a, n in ((x, shares), (out, counts)))
    collective.all_to_all(group, xs, outs, f"alltoall of {as_dtype(x.dtype)} {x.shape[1:]}")
    return out, counts


def scatter(group: Group, x: Array, reduction: Reduction) -> Array:
    """This rank's rows of the reduction; if not divisible, the first ranks get one more.

    Raises:
        ShapeError: a scalar.
        ArgumentError: the reduction is neither a sum nor a mean.
    """
    if reduction.op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ArgumentError.here(
            f"reducescatter: expected hvd.Average or hvd.Sum, got {reduction.op}"
        )
    if not x.ndim:
        raise ShapeError.here("reducescatter: expected rows, got a scalar")
    parts = np.array_split(reduction.scaled(x, reduction.prescale), group.size)
    out = np.empty_like(parts[group.index])
    what = f"reducescatter({reduction.op.value}) of {kind(x)}"
    whole = reduction.op is ReduceOp.AVG and not as_dtype(x.dtype).is_inexact
    collective.reduce_scatter(group, parts, out, "sum" if whole else str(reduction.op.value), what)
    return reduction.scaled(quotient(out, group.size) if whole else out, reduction.postscale)


def scatter_scale(group: Group, reduction: Reduction) -> float:
    """The factor of the gathered gradients in Horovod's gradient of `scatter`."""
    size = group.size if reduction.op is ReduceOp.SUM else 1
    return size * reduction.prescale * reduction.postscale


def root_index(group: Group, root_rank: int, name: str) -> int:
    """The index of a rank of the job in a group.

    Raises:
        DistributedError: the rank is not a member.
    """
    if root_rank not in group.ranks:
        raise DistributedError.here(
            f"{name}: expected root_rank among {list(group.ranks)}, got {root_rank}"
        )
    return group.ranks.index(root_rank)
