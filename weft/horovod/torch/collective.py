"""Collectives on tensors: at once, or begun and waited for by their handle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from weft.distributed.elements import array, put, settle
from weft.eager.functions.api import Tensor
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import DistributedError
from weft.horovod import reduction
from weft.horovod.basics import Compression
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Reduction, reduction_of
from weft.horovod.timeline import noted
from weft.ir.dtype import DType
from weft.ops.base import at_user_line
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group

Everyone = global_process_set


class _Call(NamedTuple):
    """A call of all ranks: what it does on arrays, then what becomes of the result here."""

    kind: str
    names: Sequence[str]
    group: Group
    work: Callable[[], Any]
    finish: Callable[[Any], Any]

    def run(self) -> Any:
        """Its result on arrays."""
        return noted(self.kind, self.names, self.group, self.work)

    def now(self) -> Any:
        """Its result."""
        return self.finish(self.run())

    def later(self) -> int:
        """Begin it on the communication thread; its handle."""
        handle = next(_numbers)
        _begun[handle] = self.group.transport.submit(self.run), self.finish
        return handle


_begun: Final[dict[int, tuple[Future[Any], Callable[[Any], Any]]]] = {}
_numbers: Final = itertools.count()
_unnamed: Final[dict[str, itertools.count[int]]] = {}


def poll(handle: int) -> bool:
    """Whether `synchronize` would not have to wait.

    Raises:
        DistributedError: there is no such call (any more).
    """
    return _of(handle, "poll")[0].done()


def synchronize(handle: int) -> Any:
    """Wait for a call that was begun; its result.

    Raises:
        DistributedError: it has been waited for already; or what other ranks did wrong.
    """
    future, finish = _of(handle, "synchronize")
    del _begun[handle]
    return finish(future.result())


def _of(handle: int, name: str) -> tuple[Future[Any], Callable[[Any], Any]]:
    if handle not in _begun:
        raise DistributedError(
            f"{name}: expected the handle of a call that was not waited for yet, got {handle}"
            f"{at_user_line()}"
        )
    return _begun[handle]


def _names(kind: str, name: str | None, count: int = 1) -> list[str]:
    """As Horovod names tensors: by the call's name, and a number where it has none."""
    if name is None:
        number = next(_unnamed.setdefault(kind, itertools.count(1)))
        name = f"{kind}.noname.{number}"
    return [name] if count == 1 else [f"{name}.{i}" for i in range(count)]


def _new(values: Array) -> Tensor:
    return wrap(leaf(values))


# -- reductions


def _reductions(
    tensors: Sequence[Tensor], how: Reduction, name: str | None, process_set: ProcessSet,
    in_place: bool,
) -> _Call:  # fmt: skip
    xs = [array(x) for x in tensors]
    group = process_set.group

    def finish(found: Sequence[Array]) -> list[Tensor]:
        if not in_place:
            return list(map(_new, found))
        for x, y in zip(tensors, found, strict=True):
            put(x, y)
        return list(tensors)

    names = _names("allreduce", name, len(xs))
    return _Call("ALLREDUCE", names, group, lambda: how.all(group, xs), finish)


def _first(call: _Call) -> _Call:
    return call._replace(finish=lambda found: call.finish(found)[0])


def allreduce(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    compression: DType | None = Compression.none, op: Any = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> Tensor:  # fmt: skip
    """A new tensor: the reduction of all ranks' tensors, their mean unless `op` says otherwise.

    Means of integers are rounded down.

    Args:
        name: of the tensor in the timeline.
        compression: `hvd.Compression.fp16` has floating elements travel as float16.
        prescale_factor, postscale_factor: what elements are multiplied by, before and behind.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: `op` and `average`, or no reduction.
        DistributedError: ranks call different things, or one of them failed or ended.
    """
    how = Reduction(reduction_of(op, average), compression, prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, False)).now()


def allreduce_(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> Tensor:  # fmt: skip
    """`allreduce` in place."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, True)).now()


def allreduce_async(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Begin `allreduce`; a handle for `poll` and `synchronize`."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, False)).later()


def allreduce_async_(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Begin `allreduce_`; the tensor changes when it is waited for."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, True)).later()


def grouped_allreduce(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    compression: DType | None = Compression.none, op: Any = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> list[Tensor]:  # fmt: skip
    """`allreduce` of several tensors together; those of one type travel as one vector."""
    how = Reduction(reduction_of(op, average), compression, prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, False).now()


def grouped_allreduce_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> list[Tensor]:  # fmt: skip
    """`grouped_allreduce` in place."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, True).now()


def grouped_allreduce_async(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Begin `grouped_allreduce`."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, False).later()


def grouped_allreduce_async_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Begin `grouped_allreduce_`."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, True).later()


def _scatter(
    tensor: Tensor, op: Any, name: str | None, prescale: float, postscale: float,
    process_set: ProcessSet,
) -> _Call:  # fmt: skip
    x, group = array(tensor), process_set.group
    how = Reduction(reduction_of(op, None, "reducescatter"), None, prescale, postscale)
    names = _names("reducescatter", name)
    return _Call("REDUCESCATTER", names, group, lambda: reduction.scatter(group, x, how), _new)


def reducescatter(
    tensor: Tensor, op: Any = None, name: str | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> Tensor:  # fmt: skip
    """A new tensor: this rank's rows of the reduction, the mean unless `op` says `hvd.Sum`.

    Where rows cannot be divided equally, the first ranks have one more.
    """
    return _scatter(tensor, op, name, prescale_factor, postscale_factor, process_set).now()


def reducescatter_async(
    tensor: Tensor, op: Any = None, name: str | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Begin `reducescatter`."""
    return _scatter(tensor, op, name, prescale_factor, postscale_factor, process_set).later()


def grouped_reducescatter(
    tensors: Sequence[Tensor], op: Any = None, name: str | None = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> list[Tensor]:  # fmt: skip
    """`reducescatter` of several tensors."""
    names = _names("reducescatter", name, len(tensors))
    factors = prescale_factor, postscale_factor
    pairs = zip(tensors, names, strict=True)
    return [_scatter(x, op, n, *factors, process_set).now() for x, n in pairs]


# -- movements


def _gather(tensor: Tensor, name: str | None, process_set: ProcessSet) -> _Call:
    x, group = array(tensor), process_set.group
    names = _names("allgather", name)
    return _Call("ALLGATHER", names, group, lambda: reduction.gather(group, x), _new)


def allgather(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = Everyone
) -> Tensor:
    """A new tensor: all ranks' tensors one after another; their first dimensions may differ.

    Raises:
        ShapeError: they differ in something else, or are scalars.
    """
    return _gather(tensor, name, process_set).now()


def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = Everyone
) -> int:
    """Begin `allgather`."""
    return _gather(tensor, name, process_set).later()


def grouped_allgather(
    tensors: Sequence[Tensor], name: str | None = None, process_set: ProcessSet = Everyone
) -> list[Tensor]:
    """`allgather` of several tensors."""
    names = _names("allgather", name, len(tensors))
    return [_gather(x, n, process_set).now() for x, n in zip(tensors, names, strict=True)]


def _spread(
    tensor: Tensor, root_rank: int, name: str | None, process_set: ProcessSet, in_place: bool
) -> _Call:
    group, out = process_set.group, array(tensor).copy()
    root = reduction.root_index(group, root_rank, "broadcast")
    what = f"broadcast from rank {root_rank} of {reduction.kind(out)}"

    def finish(_: Any) -> Tensor:
        if in_place:
            put(tensor, out)
        return tensor if in_place else _new(out)

    return _Call(
        "BROADCAST", _names("broadcast", name), group,
        lambda: collective.broadcast(group, out, root, what), finish,
    )  # fmt: skip


def broadcast(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> Tensor:
    """A new tensor: that of one rank."""
    return _spread(tensor, root_rank, name, process_set, False).now()


def broadcast_(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> Tensor:
    """`broadcast` in place."""
    return _spread(tensor, root_rank, name, process_set, True).now()


def broadcast_async(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> int:
    """Begin `broadcast`."""
    return _spread(tensor, root_rank, name, process_set, False).later()


def broadcast_async_(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> int:
    """Begin `broadcast_`; the tensor changes when it is waited for."""
    return _spread(tensor, root_rank, name, process_set, True).later()


def _exchange(tensor: Tensor, splits: Any, name: str | None, process_set: ProcessSet) -> _Call:
    x, group = array(tensor), process_set.group
    shares = None if splits is None else [int(n) for n in splits]

    def finish(found: tuple[Array, list[int]]) -> Any:
        values, counts = found
        if splits is None:
            return _new(values)
        return _new(values), Tensor(counts).to(splits.dtype if isinstance(splits, Tensor) else None)

    names = _names("alltoall", name)
    return _Call("ALLTOALL", names, group, lambda: reduction.exchange(group, x, shares), finish)


def alltoall(
    tensor: Tensor, splits: Any = None, name: str | None = None,
    process_set: ProcessSet = Everyone,
) -> Any:  # fmt: skip
    """A new tensor: the rows that each rank has for this one.

    Args:
        splits: how many rows are for each rank, in order; equal numbers if left out.

    Returns:
        The rows; where `splits` are given, a pair of them and how many came from each rank.

    Raises:
        ShapeError: splits that do not add up to the rows.
    """
    return _exchange(tensor, splits, name, process_set).now()


def alltoall_async(
    tensor: Tensor, splits: Any = None, name: str | None = None,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Begin `alltoall`."""
    return _exchange(tensor, splits, name, process_set).later()


def barrier(process_set: ProcessSet = Everyone) -> None:
    """Wait until all ranks are here."""
    settle()
    collective.barrier(process_set.group)
