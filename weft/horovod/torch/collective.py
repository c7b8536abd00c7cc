"""Collectives on tensors: blocking, or asynchronous with a handle."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from weft.collectives.elements import array, compute_pending, put
from weft.collectives.reduce_op import ReduceOp
from weft.eager.functions.api import Tensor, sparse_coo_tensor
from weft.eager.tensor.autograd.custom_function import Function
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import ArgumentError, DistributedError
from weft.horovod import reduction
from weft.horovod.collective_table import TORCH, Form, functions
from weft.horovod.compression import Compressor, NoneCompressor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Gathered, Reduction, reduction_of
from weft.horovod.timeline import noted
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group

Pull = Callable[[Any, Sequence[Tensor]], Sequence[Tensor]]
"""Gradients of a call's tensors, from its result as arrays and the gradients of its results."""


class _Call(NamedTuple):
    """A collective: its work on arrays, and how the result becomes tensors.

    Attributes:
        activity: Horovod's name for it in the timeline.
        finish: makes tensors of what `work` returned.
        pull: Horovod's gradient, if the results are new tensors.
    """

    activity: str
    names: Sequence[str]
    group: Group
    tensors: Sequence[Tensor]
    work: Callable[[], Any]
    finish: Callable[[Any], list[Tensor]]
    pull: Pull | None

    def run(self) -> Any:
        """Run it; returns arrays."""
        return noted(self.activity, self.names, self.group, self.work)

    def now(self) -> list[Tensor]:
        """Run it; returns the results, through which gradients flow."""
        if self.pull is None:
            return self.finish(self.run())
        arrays = self.run()
        if len(self.tensors) == 1:
            return list(_Differentiable.apply(self, arrays, *self.tensors))
        pairs = zip(self.tensors, arrays, strict=True)  # each result may be differentiated alone
        return [y for x, one in pairs for y in _Differentiable.apply(self, [one], x)]

    def later(self, returned: Callable[[list[Tensor]], Any]) -> int:
        """Start it on the communication thread; returns a handle. As with Horovod, no gradients."""
        handle, own = next(_numbers), (self.activity, self.group.number, *self.names)
        if own in _in_flight.values():
            raise ArgumentError.here(
                f"{self.activity.lower()}: expected another name than that of a call in flight, "
                f"got {self.names[0]!r}"
            )
        future = self.group.transport.submit(self.run)
        _begun[handle] = future, lambda arrays: returned(self.finish(arrays))
        _in_flight[handle] = own
        return handle


def _together(calls: Sequence[_Call]) -> _Call:
    """Several calls as one."""

    def finish(arrays: Sequence[Any]) -> list[Tensor]:
        return [y for call, one in zip(calls, arrays, strict=True) for y in call.finish(one)]

    return calls[0]._replace(
        names=[name for call in calls for name in call.names], finish=finish, pull=None,
        work=lambda: [call.work() for call in calls],
    )  # fmt: skip


class _Differentiable(Function):
    """A call as part of the graph. All ranks make the calls of the backward pass, too."""

    @staticmethod
    def forward(ctx: Any, call: _Call, arrays: Any, *tensors: Tensor) -> Any:
        """The results as tensors."""
        ctx.call, ctx.arrays = call, arrays
        return tuple(call.finish(arrays))

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        """The gradients of the tensors."""
        return (None, None, *ctx.call.pull(ctx.arrays, gs))


_begun: Final[dict[int, tuple[Future[Any], Callable[[Any], Any]]]] = {}
_in_flight: Final[dict[int, tuple[Any, ...]]] = {}
"""Names of calls whose end the program has not seen yet, which is the same on all ranks."""
_numbers: Final = itertools.count()
_unnamed: Final[dict[str, itertools.count[int]]] = {}


def poll(handle: int) -> bool:
    """Whether the call of a handle has completed.

    Args:
        handle: what an asynchronous collective returned.

    Raises:
        DistributedError: `synchronize` has been called for it, or there is no such handle.
    """
    done = _of(handle, "poll")[0].done()
    if done:
        _in_flight.pop(handle, None)
    return done


def synchronize(handle: int) -> Any:
    """Wait for an asynchronous call; returns its result.

    Args:
        handle: what an asynchronous collective returned.

    Raises:
        DistributedError: it has been waited for already, or the call failed.
    """
    future, finish = _of(handle, "synchronize")
    del _begun[handle]
    _in_flight.pop(handle, None)
    return finish(future.result())


def _of(handle: int, name: str) -> tuple[Future[Any], Callable[[Any], Any]]:
    if handle not in _begun:
        raise DistributedError.here(
            f"{name}: expected the handle of a call that was not waited for yet, got {handle}"
        )
    return _begun[handle]


def _names(collective: str, name: str | None, count: int) -> list[str]:
    """Names of tensors as in Horovod: the call's name, or its collective and a number."""
    if name is None:
        number = next(_unnamed.setdefault(collective, itertools.count(1)))
        name = f"{collective}.noname.{number}"
    return [name] if count == 1 else [f"{name}.{i}" for i in range(count)]


def _new(values: Array) -> Tensor:
    return wrap(leaf(values))


def _functions(
    collective_name: str, prepare: Callable[..., _Call], together: bool = False
) -> list[Any]:
    """The forms of a collective.

    Args:
        prepare: makes a call of tensors, their names, `in_place`, and all other arguments by name.
        together: whether one call takes several tensors.
    """

    def perform(
        form: Form, tensors: Sequence[Tensor], name: str | None,
        compression: type[Compressor] = NoneCompressor, **options: Any,
    ) -> Any:  # fmt: skip
        if compression is not NoneCompressor:
            pairs = [compression.compress(x) for x in tensors]
            ys = perform(form._replace(grouped=True), [x for x, _ in pairs], name, **options)
            ys = [compression.decompress(y, c) for y, (_, c) in zip(ys, pairs, strict=True)]
            return ys if form.grouped else ys[0]
        names = _names(collective_name, name, len(tensors))
        returned = list[Tensor] if form.grouped else _only
        if together or len(tensors) == 1:
            call = prepare(tensors, names, form.in_place, **options)
            return call.later(returned) if form.later else returned(call.now())
        pairs = zip(tensors, names, strict=True)
        calls = (prepare([x], [n], form.in_place, **options) for x, n in pairs)
        if form.later:
            return _together(list(calls)).later(returned)
        return [y for call in calls for y in call.now()]

    return functions(TORCH, collective_name, perform)


def _only(results: list[Tensor]) -> Any:
    """The result for one tensor; for `alltoall` with splits a pair."""
    return results[0] if len(results) == 1 else tuple(results)


def _all_reduce(
    tensors: Sequence[Tensor], names: Sequence[str], in_place: bool, average: bool | None, op: Any,
    prescale_factor: float, postscale_factor: float, process_set: ProcessSet,
) -> _Call:  # fmt: skip
    how = Reduction(reduction_of(op, average), prescale_factor, postscale_factor)
    return _reduction(tensors, names, in_place, how, process_set)


def _reduction(
    tensors: Sequence[Tensor], names: Sequence[str], in_place: bool, how: Reduction,
    process_set: ProcessSet,
) -> _Call:  # fmt: skip
    xs = [array(x) for x in tensors]
    group = process_set.group

    def finish(arrays: Sequence[Array]) -> list[Tensor]:
        if not in_place:
            return list(map(_new, arrays))
        for x, y in zip(tensors, arrays, strict=True):
            put(x, y)
        return list(tensors)

    def pull(_: Any, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        return _reduction(gs, _names("allreduce", None, len(gs)), False, how, process_set).now()

    work = lambda: how.all(group, xs)  # noqa: E731
    return _Call("ALLREDUCE", names, group, tensors, work, finish, None if in_place else pull)


def _scatter(
    tensors: Sequence[Tensor], names: Sequence[str], in_place: bool, op: Any,
    prescale_factor: float, postscale_factor: float, process_set: ProcessSet,
) -> _Call:  # fmt: skip
    x, group = array(tensors[0]), process_set.group
    how = Reduction(reduction_of(op, None, "reducescatter"), prescale_factor, postscale_factor)
    scale = reduction.scatter_scale(group, how)

    def pull(_: Any, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        (g,) = gs
        return [allgather(g if scale == 1.0 else g * scale, process_set=process_set)]

    work = lambda: reduction.scatter(group, x, how)  # noqa: E731
    return _Call("REDUCESCATTER", names, group, tensors, work, lambda y: [_new(y)], pull)


def _gather(
    tensors: Sequence[Tensor], names: Sequence[str], in_place: bool, process_set: ProcessSet
) -> _Call:
    x, group = array(tensors[0]), process_set.group

    def pull(gathered: Gathered, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        first, last = gathered.own(group)
        return [allreduce(gs[0], process_set=process_set)[first:last]]

    work = lambda: reduction.gather(group, x)  # noqa: E731
    return _Call("ALLGATHER", names, group, tensors, work, lambda y: [_new(y.whole)], pull)


def _broadcast(
    tensors: Sequence[Tensor], names: Sequence[str], in_place: bool, root_rank: int,
    process_set: ProcessSet,
) -> _Call:  # fmt: skip
    group, out = process_set.group, array(tensors[0]).copy()
    root = reduction.root_index(group, root_rank, "broadcast")
    what = f"broadcast from rank {root_rank} of {reduction.kind(out)}"

    def finish(_: Any) -> list[Tensor]:
        if not in_place:
            return [_new(out)]
        put(tensors[0], out)
        return list(tensors)

    def pull(_: Any, gs: Sequence[Tensor]) -> Sequence[Tensor]:
        g = allreduce(gs[0], process_set=process_set)
        return [g if group.index == root else g * 0.0]

    work = lambda: collective.broadcast(group, out, root, what)  # noqa: E731
    return _Call("BROADCAST", names, group, tensors, work, finish, None if in_place else pull)


def _exchange(
    tensors: Sequence[Tensor], names: Sequence[str], in_place: bool, splits: Any,
    process_set: ProcessSet,
) -> _Call:  # fmt: skip
    x, group = array(tensors[0]), process_set.group
    counts = None if splits is None else [int(n) for n in splits]

    def finish(received: tuple[Array, list[int]]) -> list[Tensor]:
        rows, numbers = received
        if splits is None:
            return [_new(rows)]
        dtype = splits.dtype if isinstance(splits, Tensor) else None
        return [_new(rows), Tensor(numbers).to(dtype)]

    def pull(received: tuple[Array, list[int]], gs: Sequence[Tensor]) -> Sequence[Tensor]:
        return [alltoall(gs[0], received[1], process_set=process_set)[0]]

    work = lambda: reduction.exchange(group, x, counts)  # noqa: E731
    return _Call("ALLTOALL", names, group, tensors, work, finish, pull)


(
    allreduce, allreduce_, allreduce_async, allreduce_async_,
    grouped_allreduce, grouped_allreduce_, grouped_allreduce_async, grouped_allreduce_async_,
) = _functions("allreduce", _all_reduce, together=True)  # fmt: skip
(
    reducescatter, reducescatter_async, grouped_reducescatter, grouped_reducescatter_async,
) = _functions("reducescatter", _scatter)  # fmt: skip
allgather, allgather_async, grouped_allgather, grouped_allgather_async = _functions(
    "allgather", _gather
)
broadcast, broadcast_, broadcast_async, broadcast_async_ = _functions("broadcast", _broadcast)
alltoall, alltoall_async = _functions("alltoall", _exchange)


def sparse_allreduce_async(
    tensor: Any, name: str | None = None, op: Any = ReduceOp.AVG,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], Any]:  # fmt: skip
    """Start the reduction of all ranks' sparse tensors; returns a function that waits for it.

    Args:
        tensor: this rank's tensor by coordinates; entries of ranks at one place are added.
        name: of the tensor in the timeline.
        op: `hvd.Average` or `hvd.Sum`.
        process_set: the ranks that take part.
    """
    entries = tensor.coalesce()
    parts = entries.indices().transpose(0, 1), entries.values()
    pairs = zip(parts, _names("sparse_allreduce", name, 2), strict=True)
    calls = [_gather([x], [n], False, process_set) for x, n in pairs]
    divisor = process_set.size() if reduction_of(op, None) is ReduceOp.AVG else 1

    def made(gathered: list[Tensor]) -> Any:
        places, values = gathered
        return sparse_coo_tensor(places.transpose(0, 1), values / divisor, tensor.shape).coalesce()

    return functools.partial(synchronize, _together(calls).later(made))


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all ranks have called it.

    Args:
        process_set: the ranks that wait.
    """
    compute_pending()
    collective.barrier(process_set.group)


__all__ = [
    "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_",
    "broadcast_async", "broadcast_async_", "grouped_allgather", "grouped_allgather_async",
    "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "poll",
    "reducescatter", "reducescatter_async", "sparse_allreduce_async", "synchronize",
]  # fmt: skip
