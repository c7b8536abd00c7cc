"""`DistributedDataParallel`: each rank has a replica of the model and a shard of the batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.collectives.elements import take_from_first
from weft.collectives.factors import mean_gradients
from weft.collectives.process_group import member
from weft.collectives.recorded import run_pending_collectives
from weft.collectives.rows import reduce_rows
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.mode import is_grad_enabled
from weft.eager.tensor.autograd.hook import watch_backward
from weft.errors import ArgumentError, DistributedError
from weft.nn.module.module import Module
from weft.nn.parallel.alike import make_alike
from weft.nn.parallel.bucket import Hook, hooked
from weft.nn.parallel.large import Exchanged, Large
from weft.nn.parallel.shard import Streams, check_shards, in_shards
from weft.transport import collective
from weft.transport.group import Group
from weft.transport.join import join_all

BUCKET_MB: Final = 8.0


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over all ranks at the end of each backward pass.

    All ranks start with rank 0's parameters and buffers, see different examples, and make the same
    update, so parameters stay bitwise equal. The average is part of the same program as the
    backward pass and the optimizer's update.

    Args:
        module: the model.
        broadcast_buffers: whether each forward pass in training starts from rank 0's buffers, such
            as running statistics.
        init_sync: whether all ranks take rank 0's parameters; otherwise they are checked to be the
            same.
        process_group: the ranks; by default all.
        find_unused_parameters: whether a forward pass may leave parameters unused. If not, an error
            names the unused ones.
        static_graph: as `find_unused_parameters`.
        bucket_cap_mb: gradients are reduced in buckets of this many MiB; each reduction starts when
            its bucket is complete, during the backward pass.
        device_ids, output_device, dim, gradient_as_bucket_view: have no effect.
        delay_all_reduce_named_params, param_to_hook_all_reduce: have no effect.
        skip_all_reduce_unused_params: has no effect.
        mixed_precision: must be `None`: write `autocast`.
        device_mesh: with one dimension, instead of `process_group`.
        shards: a power of two: in training the global batch is split into this many shards, which
            are computed one by one; their gradients are added in a fixed tree. Then parameters are
            bitwise equal on 1, 2, 4, ... ranks, up to that number. Each rank's batch size must be a
            multiple of its number of shards, and the loss must be a mean. Random numbers of the
            forward pass follow from the first rank's generators and the shard. `SyncBatchNorm`
            raises an error.

    Raises:
        DistributedError: ranks have models of different shapes, or different values without
            `init_sync`.
        ArgumentError: no parameter needs a gradient.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(3, 1))
        >>> model(wf.ones(2, 3)).sum().backward()
        >>> model.module.weight.grad.tolist()
        [[2.0, 2.0, 2.0]]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool = True, init_sync: bool = True, process_group: Group | None = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
        mixed_precision: None = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False, shards: int | None = None,
    ) -> None:  # fmt: skip
        del delay_all_reduce_named_params, param_to_hook_all_reduce, skip_all_reduce_unused_params
        super().__init__()
        self.module = module
        if mixed_precision is not None:
            raise ArgumentError.here(
                "DistributedDataParallel: expected mixed_precision=None: call the model in "
                'torch.autocast("cpu", torch.bfloat16)'
            )
        chosen = process_group if device_mesh is None else device_mesh.get_group()
        self.process_group = member(chosen, "DistributedDataParallel")
        self._hook: tuple[Hook, Any] | None = None
        self._joining = False
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters or static_graph
        self.require_backward_grad_sync = True
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise ArgumentError.here(
                "DistributedDataParallel: expected parameters that need gradients, got none"
            )
        self._names = [name for name, _ in named]
        self._parameters_to_reduce = tuple([p for _, p in named])
        ranks = self.process_group.size
        self._shards = 0 if shards is None else check_shards(shards, ranks)
        self._streams = Streams(self.process_group)
        self._bucket_bytes = int((BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb) * 2**20)
        self._expecting = False
        self._large = Large(self._parameters_to_reduce, self.process_group)
        tensors = dict([*module.named_parameters(), *module.named_buffers()])
        make_alike("DistributedDataParallel", tensors, self.process_group, init_sync)
        watch_backward(self)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own output."""
        if self.training and is_grad_enabled() and self.require_backward_grad_sync:
            if self.broadcast_buffers and not self._joining:
                self._broadcast_buffers()
            if self._large.may_exchange:
                run_pending_collectives()  # before this step begins, so that it becomes one program
            self._expecting = True
        if self._shards and self.training and is_grad_enabled():
            named = dict(zip(self._names, self._parameters_to_reduce, strict=True))
            first = self._shards * self.process_group.index
            return in_shards(self.module, named, self._shards, args, kwargs, self._streams, first)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context in which gradients accumulate on each rank; the next backward pass averages them.

        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(1, 1))
        >>> with model.no_sync():
        ...     model(wf.ones(1, 1)).sum().backward()
        >>> dist.destroy_process_group()
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Hook) -> None:
        """Let a function reduce gradients, instead of their mean over ranks.

        Args:
            state: the function's first argument.
            hook: called with it and each `GradBucket`, in the same order on all ranks; returns a
                future of the vector that replaces the bucket's. `torch.distributed.algorithms.
                ddp_comm_hooks.default_hooks` has some.

        Raises:
            ArgumentError: there is one already, or the batch is split into `shards`.
        """
        if self._hook is not None or self._shards:
            raise ArgumentError.here(
                "register_comm_hook: expected a DistributedDataParallel without a hook and shards"
            )
        self._hook = hook, state

    @contextlib.contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Context in which ranks may have different numbers of batches.

        A rank that leaves it contributes zeros to the others' gradients until all have left it;
        then all take the parameters and buffers of the last one. Inside, buffers are not broadcast.

        Args:
            divide_by_initial_world_size: must be true: means are over all ranks.
            enable: `False` for a context without effect.
            throw_on_early_termination: must be false.

        Raises:
            ArgumentError: another option, or a group of some ranks.
        """
        if not divide_by_initial_world_size or throw_on_early_termination:
            raise ArgumentError.here(
                "DistributedDataParallel.join: expected divide_by_initial_world_size=True and "
                "throw_on_early_termination=False"
            )
        if enable and self.process_group.number:
            raise ArgumentError.here("DistributedDataParallel.join: expected a group of all ranks")
        self._joining = enable
        try:
            yield
        finally:
            self._joining = False
        if enable:
            run_pending_collectives()
            last = join_all("DistributedDataParallel.join")
            tensors = [*self.module.parameters(), *self.module.buffers()]
            take_from_first(tensors, self.process_group, last)

    # -- gradients

    def after_backward(self, leaves: Sequence[Lazy]) -> None:
        """Average gradients, if a backward pass over these leaves changed any of them."""
        if not self._expecting or not self.require_backward_grad_sync:
            return
        reached = {x.leaf() for x in leaves if x.leaf is not None}
        used = [p in reached and p.grad is not None for p in self._parameters_to_reduce]
        if not any(used):
            return  # leaves of another model
        self._expecting = False
        if self.find_unused_parameters or not all(used):
            used = self._used_anywhere(used)
        chosen = [p for p, u in zip(self._parameters_to_reduce, used, strict=True) if u]
        chosen.reverse()  # the last layers' gradients are computed first
        for p in chosen:
            if p.grad is None:
                p.grad = p.detach().new_zeros(p.shape)
        if self._hook is not None:
            hooked(*self._hook, chosen, self._bucket_bytes)
            return
        tables, products = Exchanged({}, set()) if self._shards else self._large.exchanged()
        group = self.process_group
        low = [p.grad for p in chosen if id(p) in products]
        others = [p.grad for p in chosen if id(p) not in products and id(p) not in tables]
        _replace(
            [*low, *others],
            lambda values: mean_gradients(
                values[: len(low)], values[len(low) :], group, self._bucket_bytes
            ),
        )
        rows = [p for p in chosen if id(p) in tables]  # which stay row-sparse
        _replace(
            [p.grad for p in rows],
            lambda values: reduce_rows(values, [tables[id(p)] for p in rows], group),
        )

    def _used_anywhere(self, used: Sequence[bool]) -> list[bool]:
        """Which parameters have a gradient on any rank."""
        if not self.find_unused_parameters:
            names = [n for n, u in zip(self._names, used, strict=True) if not u]
            raise DistributedError.here(
                "DistributedDataParallel: expected gradients of all parameters, got none of "
                f"{', '.join(names)}; pass find_unused_parameters=True if they may be unused, or "
                f"set requires_grad to False"
            )
        run_pending_collectives()
        flags = np.array(used, np.uint8)
        collective.all_reduce(
            self.process_group, flags, flags, "max", f"used parameters of {len(used)}"
        )
        return [bool(u) for u in flags]

    # -- synchronization at the start

    def _broadcast_buffers(self) -> None:
        take_from_first(list(self.module.buffers()), self.process_group)


def _replace(grads: Sequence[Any], mean: Callable[[Sequence[Lazy]], Sequence[Lazy]]) -> None:
    """Replace gradients, if there are any, by their mean over ranks."""
    if grads:
        type(grads[0]).replace_all(grads, mean([g.lazy for g in grads]))
