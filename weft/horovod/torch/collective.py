"""Collectives on tensors: blocking, or asynchronous with a handle."""

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
    """A collective: its work on arrays, and how the result becomes tensors."""

    kind: str
    names: Sequence[str]
    group: Group
    work: Callable[[], Any]
    finish: Callable[[Any], Any]

    def run(self) -> Any:
        """Run it; returns arrays."""
        return noted(self.kind, self.names, self.group, self.work)

    def now(self) -> Any:
        """Run it; returns the result."""
        return self.finish(self.run())

    def later(self) -> int:
        """Start it on the communication thread; returns a handle."""
        handle = next(_numbers)
        _begun[handle] = self.group.transport.submit(self.run), self.finish
        return handle


_begun: Final[dict[int, tuple[Future[Any], Callable[[Any], Any]]]] = {}
_numbers: Final = itertools.count()
_unnamed: Final[dict[str, itertools.count[int]]] = {}


def poll(handle: int) -> bool:
    """Whether the call of a handle has completed.

    Raises:
        DistributedError: `synchronize` has been called for it, or there is no such handle.
    """
    return _of(handle, "poll")[0].done()


def synchronize(handle: int) -> Any:
    """Wait for an asynchronous call; returns its result.

    Raises:
        DistributedError: it has been waited for already, or the call failed.
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
    """Names of tensors as in Horovod: the call's name, or its kind and a number."""
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
    """The reduction of all ranks' tensors, as a new tensor; the mean unless `op` says otherwise.

    Means of integers are rounded down.

    Args:
        name: of the tensor in the timeline.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16.
        prescale_factor, postscale_factor: factors before and after the reduction.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: both `op` and `average` are given, or `op` is not a reduction.
        DistributedError: ranks make different calls, or one of them failed or ended.
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
    """Asynchronous `allreduce`; returns a handle for `poll` and `synchronize`."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, False)).later()


def allreduce_async_(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `allreduce_`; the tensor changes in `synchronize`."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, True)).later()


def grouped_allreduce(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    compression: DType | None = Compression.none, op: Any = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> list[Tensor]:  # fmt: skip
    """`allreduce` of several tensors; those of one type are sent as one vector."""
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
    """Asynchronous `grouped_allreduce`."""
    how = Reduction(reduction_of(op, average), None, prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, False).later()


def grouped_allreduce_async_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `grouped_allreduce_`."""
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
    """This rank's rows of the reduction, as a new tensor; the mean unless `op` is `hvd.Sum`.

    If rows cannot be divided equally, the first ranks get one more.
    """
    return _scatter(tensor, op, name, prescale_factor, postscale_factor, process_set).now()


def reducescatter_async(
    tensor: Tensor, op: Any = None, name: str | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `reducescatter`."""
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
    """Concatenate all ranks' tensors along their first dimension, whose length may differ.

    Raises:
        ShapeError: other dimensions or types differ, or they are scalars.
    """
    return _gather(tensor, name, process_set).now()


def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = Everyone
) -> int:
    """Asynchronous `allgather`."""
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
    """The tensor of one rank, as a new tensor."""
    return _spread(tensor, root_rank, name, process_set, False).now()


def broadcast_(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> Tensor:
    """`broadcast` in place."""
    return _spread(tensor, root_rank, name, process_set, True).now()


def broadcast_async(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> int:
    """Asynchronous `broadcast`."""
    return _spread(tensor, root_rank, name, process_set, False).later()


def broadcast_async_(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = Everyone
) -> int:
    """Asynchronous `broadcast_`; the tensor changes in `synchronize`."""
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
    """The rows that the ranks send to this one, as a new tensor.

    Args:
        splits: the number of rows for each rank; by default equal numbers.

    Returns:
        The rows; if `splits` is given, a pair of them and the number of rows from each rank.

    Raises:
        ShapeError: `splits` does not add up to the rows.
    """
    return _exchange(tensor, splits, name, process_set).now()


def alltoall_async(
    tensor: Tensor, splits: Any = None, name: str | None = None,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `alltoall`."""
    return _exchange(tensor, splits, name, process_set).later()


def barrier(process_set: ProcessSet = Everyone) -> None:
    """Wait until all ranks have called it."""
    settle()
    collective.barrier(process_set.group)
