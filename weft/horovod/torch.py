"""Horovod for eager tensors: programs written for `horovod.torch` change their import.

>>> import weft as wf
>>> import weft.horovod.torch as hvd
>>> hvd.init()
>>> model = wf.nn.Linear(2, 1)
>>> optimizer = wf.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
>>> optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
>>> hvd.broadcast_parameters(model.state_dict(), root_rank=0)
>>> hvd.broadcast_optimizer_state(optimizer, root_rank=0)
>>> model(wf.ones(4, 2)).mean().backward()
>>> optimizer.step()
>>> hvd.shutdown()
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

import weft.distributed as dist
from weft.distributed.recorded import reduce_all
from weft.eager.functions.api import Tensor, no_grad
from weft.errors import OptimizerError
from weft.horovod.basics import (
    Average,
    Compression,
    Max,
    Min,
    Product,
    Sum,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    reduction_of,
    shutdown,
    size,
)
from weft.ir.dtype import DType
from weft.ops.base import at_user_line
from weft.optim.optimizer import Optimizer
from weft.transport import collective, session

BUCKET_BYTES = 8 << 20


def allreduce(
    tensor: Tensor, average: bool | None = None, name: str | None = None,
    compression: DType | None = Compression.none, op: Any = None,
) -> Tensor:  # fmt: skip
    """A new tensor: the reduction of all ranks' tensors, their mean unless `op` says otherwise."""
    found = tensor.detach().clone()
    if compression is not None:
        found = found.to(compression)
    dist.all_reduce(found, reduction_of(op, average))
    return found.to(tensor.dtype)


def allreduce_(
    tensor: Tensor, average: bool | None = None, name: str | None = None, op: Any = None
) -> Tensor:
    """`allreduce` in place."""
    dist.all_reduce(tensor, reduction_of(op, average))
    return tensor


def allgather(tensor: Tensor, name: str | None = None) -> Tensor:
    """A new tensor: all ranks' tensors one after another; their first dimensions may differ."""
    every: list[Any] = [None] * size()
    dist.all_gather_object(every, tensor.detach())
    return tensor.new_tensor(np.concatenate([x.numpy() for x in every]))


def broadcast(tensor: Tensor, root_rank: int, name: str | None = None) -> Tensor:
    """A new tensor: that of one rank."""
    return broadcast_(tensor.detach().clone(), root_rank)


def broadcast_(tensor: Tensor, root_rank: int, name: str | None = None) -> Tensor:
    """`broadcast` in place."""
    dist.broadcast(tensor, root_rank)
    return tensor


def alltoall(
    tensor: Tensor, splits: Sequence[int] | None = None, name: str | None = None
) -> Tensor:
    """A new tensor: the rows that each rank has for this one, `splits[i]` of each for rank i."""
    world = session.world()
    rows = tensor.shape[0]
    shares = [rows // world.size] * world.size if splits is None else list(splits)
    taken = [np.zeros(1, np.int64) for _ in shares]
    collective.all_to_all(world, [np.array([n]) for n in shares], taken, "alltoall: splits")
    counts = [int(n[0]) for n in taken]
    out = tensor.new_zeros((sum(counts), *tensor.shape[1:]))
    dist.all_to_all_single(out, tensor, counts, shares)
    return out


def barrier() -> None:
    """Wait until all ranks are here."""
    dist.barrier()


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Give all ranks one rank's values of a state dict, or of named parameters."""
    pairs = params.items() if isinstance(params, Mapping) else params
    for _, tensor in cast("Iterable[tuple[str, Any]]", pairs):
        if isinstance(tensor, Tensor):
            dist.broadcast(tensor, root_rank)


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None) -> Any:
    """One rank's structure of tensors, numbers and texts, on all ranks."""
    found = [obj]
    dist.broadcast_object_list(found, root_rank)
    return found[0]


def allgather_object(obj: Any, name: str | None = None) -> list[Any]:
    """All ranks' structures."""
    every: list[Any] = [None] * size()
    dist.all_gather_object(every, obj)
    return every


def broadcast_optimizer_state(optimizer: Optimizer, root_rank: int) -> None:
    """Give all ranks one rank's state of an optimizer."""
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank))


class _Distributed:
    """What an optimizer does besides, once it is one of several ranks."""

    _hvd: dict[str, Any]

    def synchronize(self) -> None:
        """Reduce gradients now, as to clip them before `step`; see `skip_synchronize`."""
        found = [p for p in self._hvd["parameters"] if p.grad is not None]
        found.reverse()
        if found:
            _reduce([p.grad for p in found], self._hvd["op"], self._hvd["compression"])

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Inside, `step` uses gradients as they are."""
        self._hvd["skip"] = True
        try:
            yield
        finally:
            self._hvd["skip"] = False

    def step(self, closure: Any = None) -> Any:
        """Reduce the gradients over ranks, then update."""
        if not self._hvd["skip"]:
            self.synchronize()
        return super().step(closure)  # pyright: ignore[reportAttributeAccessIssue]


def _reduce(grads: Sequence[Tensor], op: Any, compression: DType | None) -> None:
    with no_grad():
        sent = [g if compression is None else g.to(compression) for g in grads]
        found = reduce_all([g.lazy for g in sent], op.value, session.world(), BUCKET_BYTES)
        if compression is None:
            type(grads[0]).replace_all(grads, found)
            return
        for g, s, y in zip(grads, sent, found, strict=True):
            s.replace(y)
            g.copy_(s)


def DistributedOptimizer(
    optimizer: Optimizer, named_parameters: Iterable[tuple[str, Any]] | None = None,
    compression: DType | None = Compression.none, backward_passes_per_step: int = 1,
    op: Any = Average,
) -> Any:  # fmt: skip
    """The optimizer, whose `step` first reduces gradients over all ranks.

    Args:
        named_parameters: those that have gradients; all of the optimizer's if left out.
        compression: `hvd.Compression.fp16` has gradients travel as float16.
        backward_passes_per_step: gradients add up over so many passes before `step`.
        op: `hvd.Average` or `hvd.Sum`.

    Raises:
        OptimizerError: parameters of the same name, or that are none of the optimizer's.
    """
    own = [p for group in optimizer.param_groups for p in group["params"]]
    named = list(named_parameters or [(str(i), p) for i, p in enumerate(own)])
    names = [name for name, _ in named]
    if len(set(names)) != len(names) or {id(p) for _, p in named} - {id(p) for p in own}:
        raise OptimizerError(
            "DistributedOptimizer: expected parameters of the optimizer, each with a name of its "
            f"own{at_user_line()}"
        )
    if backward_passes_per_step < 1:
        raise OptimizerError(
            "DistributedOptimizer: expected backward_passes_per_step from 1, got "
            f"{backward_passes_per_step}{at_user_line()}"
        )
    kind = type(optimizer)
    found: Any = object.__new__(type(f"Distributed{kind.__name__}", (_Distributed, kind), {}))
    found.__dict__ = optimizer.__dict__
    found.__dict__["_hvd"] = {
        "parameters": own, "op": reduction_of(op, None), "compression": compression, "skip": False,
    }  # fmt: skip
    return found


__all__ = [
    "Average", "Compression", "DistributedOptimizer", "Max", "Min", "Product", "Sum", "allgather",
    "allgather_object", "allreduce", "allreduce_", "alltoall", "barrier", "broadcast",
    "broadcast_", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "init",
    "is_initialized", "local_rank", "local_size", "rank", "shutdown", "size",
]  # fmt: skip
