"""Collectives on tensors: blocking, or asynchronous with a handle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from weft.collectives.elements import array, put, settle
from weft.eager.functions.api import Tensor
from weft.eager.tensor.autograd.custom_function import Function
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import DistributedError
from weft.horovod import reduction
from weft.horovod.basics import Average
from weft.horovod.compression import Compressor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Gathered, Reduction, reduction_of
from weft.horovod.timeline import noted
from weft.horovod.torch.compression import Compression
from weft.ir.node import at_user_line
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group

Everyone = global_process_set


Pull = Callable[[Any, Sequence[Tensor]], Sequence[Tensor]]
"""Gradients of a call's tensors, from what it found and the gradients of its results."""


class _Call(NamedTuple):
    """A collective: its work on arrays, and how the result becomes tensors.

    Attributes:
        pull: Horovod's gradient, if the result is new; collectives like the call itself.
    """

    kind: str
    names: Sequence[str]
    group: Group
    tensors: Sequence[Tensor]
    work: Callable[[], Any]
    finish: Callable[[Any], Any]
    pull: Pull | None

    def run(self) -> Any:
        """Run it; returns arrays."""
        return noted(self.kind, self.names, self.group, self.work)

    def now(self) -> Any:
        """Run it; returns the result, through which gradients flow."""
        if self.pull is None:
            return self.finish(self.run())
        found = _Differentiable.apply(self, *self.tensors)
        return list(found) if isinstance(found, tuple) else found

    def later(self) -> int:
        """Start it on the communication thread; returns a handle. As with Horovod, no gradients."""
        handle = next(_numbers)
        _begun[handle] = self.group.transport.submit(self.run), self.finish
        return handle


class _Differentiable(Function):
    """A call as part of the graph. All ranks make the calls of the backward pass, too."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Tensor) -> Any:
        """The results as tensors."""
        found = call.run()
        ctx.call, ctx.found = call, found
        results = call.finish(found)
        return tuple(results) if isinstance(results, list) else results

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        """The gradients of the tensors."""
        return (None, *ctx.call.pull(ctx.found, gs))


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

    def pull(_: Any, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        return _reductions(gs, how, None, process_set, False).now()

    names = _names("allreduce", name, len(xs))
    work = lambda: how.all(group, xs)  # noqa: E731
    return _Call("ALLREDUCE", names, group, tensors, work, finish, None if in_place else pull)


def _first(call: _Call) -> _Call:
    return call._replace(finish=lambda found: call.finish(found)[0])


def _compressed(
    tensors: Sequence[Tensor], compression: type[Compressor],
    call: Callable[[Sequence[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:  # fmt: skip
    """The results of a call that is made with compressed tensors."""
    pairs = [compression.compress(x) for x in tensors]
    found = call([x for x, _ in pairs])
    return [compression.decompress(y, c) for y, (_, c) in zip(found, pairs, strict=True)]


def allreduce(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    compression: type[Compressor] = Compression.none, op: Any = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> Tensor:  # fmt: skip
    """The reduction of all ranks' tensors, as a new tensor; the mean unless `op` says otherwise.

    Means of integers are rounded towards zero. The gradient is the same reduction of the results'
    gradients, as in Horovod; so it is of all collectives whose results are new tensors. All ranks
    take part in the backward pass then. Results of `synchronize` have no gradient.

    Args:
        name: of the tensor in the timeline.
        compression: `hvd.Compression.fp16` sends floating-point elements as float16; or a class
            of your own with `compress` and `decompress`.
        prescale_factor, postscale_factor: factors before and after the reduction.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: both `op` and `average` are given, or `op` is not a reduction.
        DistributedError: ranks make different calls, or one of them failed or ended.
    """
    return grouped_allreduce(
        [tensor], average, name, compression, op, prescale_factor, postscale_factor, process_set
    )[0]


def allreduce_(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> Tensor:  # fmt: skip
    """`allreduce` in place."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, True)).now()


def allreduce_async(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `allreduce`; returns a handle for `poll` and `synchronize`."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, False)).later()


def allreduce_async_(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `allreduce_`; the tensor changes in `synchronize`."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _first(_reductions([tensor], how, name, process_set, True)).later()


def grouped_allreduce(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    compression: type[Compressor] = Compression.none, op: Any = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = Everyone,
) -> list[Tensor]:  # fmt: skip
    """`allreduce` of several tensors; those of one type are sent as one vector."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _compressed(
        tensors, compression, lambda xs: _reductions(xs, how, name, process_set, False).now()
    )


def grouped_allreduce_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> list[Tensor]:  # fmt: skip
    """`grouped_allreduce` in place."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, True).now()


def grouped_allreduce_async(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `grouped_allreduce`."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, False).later()


def grouped_allreduce_async_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
    op: Any = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = Everyone,
) -> int:  # fmt: skip
    """Asynchronous `grouped_allreduce_`."""
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _reductions(tensors, how, name, process_set, True).later()


def _scatter(
    tensor: Tensor, op: Any, name: str | None, prescale: float, postscale: float,
    process_set: ProcessSet,
) -> _Call:  # fmt: skip
    x, group = array(tensor), process_set.group
    how = Reduction(reduction_of(op, None, "reducescatter"), prescale, postscale)
    scale = reduction.scatter_scale(group, how)

    def pull(_: Any, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        (g,) = gs
        return [allgather(g if scale == 1.0 else g * scale, process_set=process_set)]

    names = _names("reducescatter", name)
    work = lambda: reduction.scatter(group, x, how)  # noqa: E731
    return _Call("REDUCESCATTER", names, group, [tensor], work, _new, pull)


def reducescatter(
    tensor: Tensor, name: str | None = None, compression: type[Compressor] = Compression.none,
    op: Any = Average, process_set: ProcessSet = Everyone, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:  # fmt: skip
    """This rank's rows of the reduction, as a new tensor; the mean unless `op` is `hvd.Sum`.

    If rows cannot be divided equally, the first ranks get one more.
    """
    factors = prescale_factor, postscale_factor
    return grouped_reducescatter([tensor], name, compression, op, process_set, *factors)[0]


def reducescatter_async(
    tensor: Tensor, name: str | None = None, op: Any = Average,
    process_set: ProcessSet = Everyone, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:  # fmt: skip
    """Asynchronous `reducescatter`."""
    return _scatter(tensor, op, name, prescale_factor, postscale_factor, process_set).later()


def grouped_reducescatter(
    tensors: Sequence[Tensor], name: str | None = None,
    compression: type[Compressor] = Compression.none, op: Any = Average,
    process_set: ProcessSet = Everyone, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:  # fmt: skip
    """`reducescatter` of several tensors."""
    factors = prescale_factor, postscale_factor
    names = _names("reducescatter", name, len(tensors))

    def call(xs: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(xs, names, strict=True)
        return [_scatter(x, op, n, *factors, process_set).now() for x, n in pairs]

    return _compressed(tensors, compression, call)


# -- movements


def _gather(tensor: Tensor, name: str | None, process_set: ProcessSet) -> _Call:
    x, group = array(tensor), process_set.group

    def pull(found: Gathered, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        first, last = found.own(group)
        return [allreduce(gs[0], process_set=process_set)[first:last]]

    names = _names("allgather", name)
    work = lambda: reduction.gather(group, x)  # noqa: E731
    return _Call("ALLGATHER", names, group, [tensor], work, lambda f: _new(f.whole), pull)


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

    def pull(_: Any, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        g = allreduce(gs[0], process_set=process_set)
        return [g if group.index == root else g * 0.0]

    return _Call(
        "BROADCAST", _names("broadcast", name), group, [tensor],
        lambda: collective.broadcast(group, out, root, what), finish, None if in_place else pull,
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

    def pull(found: tuple[Array, list[int]], gs: Sequence[Tensor]) -> Sequence[Tensor]:
        return [alltoall(gs[0], found[1], process_set=process_set)[0]]

    names = _names("alltoall", name)
    work = lambda: reduction.exchange(group, x, shares)  # noqa: E731
    return _Call("ALLTOALL", names, group, [tensor], work, finish, pull)


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
    found = _exchange(tensor, splits, name, process_set).now()
    return tuple(found) if isinstance(found, list) else found


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
