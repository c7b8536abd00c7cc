"""The unit of `fully_shard`: parameters that are gathered together while a module computes."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from weft.collectives.elements import array
from weft.collectives.recorded import await_result
from weft.distributed.fsdp.accumulation import Accumulation
from weft.distributed.fsdp.policy import MixedPrecisionPolicy
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.mode import is_grad_enabled, no_grad
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.hook import watch_backward
from weft.eager.tensor.dispatch import Recorded, leaf, record, wrap
from weft.eager.tensor.tensor import Tensor
from weft.func.tree import map_structure
from weft.ir.dtype import DType
from weft.ops.communication.shard import rows_of
from weft.ops.communication.unshard import (
    begin_shards,
    end_shards,
    mean_of_parts,
    scatter_mean,
)
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.fact import Autocast
from weft.transport.division import Division, Sizes, divide, division_of
from weft.transport.group import Group

Shapes = tuple[Sizes, ...]


_BEGIN: Final = Recorded(begin_shards, False, False, Autocast.KEPT)
_END: Final = Recorded(end_shards, False, False, Autocast.KEPT)
_SCATTER: Final = Recorded(scatter_mean, False, False, Autocast.KEPT)
_MEAN: Final = Recorded(mean_of_parts, False, False, Autocast.KEPT)
_calls: Final[list[Unit]] = []
"""Units whose modules are being called, the outermost first."""
_order: Final[list[Unit]] = []
"""Units gathered since the outermost call started, in order."""


class Unit:
    """The parameters of a module, of which each rank keeps its shards.

    Args:
        paths: parameters by their paths in the module; one may have several.
        dims: the dimension along which each is sharded, by identity; rows by default.
        group: the ranks that have the shards.
        replicas: the ranks that have the same shards as this one, if others do.
        again: whether the backward pass gathers again; `None` for all but the outermost unit.
        within: the group from which the backward pass gathers, if it is smaller than `group`.

    Attributes:
        modules: those with the parameters.
        whole: the shape of each whole parameter.
        ahead: the units to gather next in a forward pass; `None` for the one that followed in the
            previous call.
        ahead_backward: the number of units to gather next in a backward pass.
    """

    def __init__(
        self, paths: Mapping[str, Tensor], dims: Mapping[int, int], group: Group,
        replicas: Group | None, again: bool | None, within: Group | None,
        policy: MixedPrecisionPolicy,
    ) -> None:  # fmt: skip
        self.paths = dict(paths)
        self.group = group
        self.replicas = replicas
        self.again = again
        self.within = within
        self.kept = False  # whether whole parameters stay after a backward pass
        self.policy = policy
        self.syncs = self.all_reduces = True
        self.divisor: float | None = None  # of summed gradients; `None` for the number of ranks
        self.modules: list[Any] = []
        self.params: list[Any] = list({id(p): p for p in paths.values()}.values())
        self.whole: list[Sizes] = [tuple(p.shape) for p in self.params]
        self.dims = tuple([dims.get(id(p), 0) for p in self.params])
        self._coming: tuple[list[Lazy], Any] | None = None  # shards, and the ticket of their gather
        self._held: tuple[list[Lazy], list[Any]] | None = None  # shards, and the whole parameters
        self._unused = False  # whether no call has used the gathered parameters yet
        self.following: list[Unit] = []  # units that were gathered next in the previous call
        self.ahead: list[Unit] | None = None
        self.ahead_backward = 1
        self._local = Accumulation()  # of whole gradients
        self._parts = Accumulation()  # of sharded gradients not yet reduced over replicas
        self.opened: Any = None  # the context of `unshard`, while it is active
        for p, dim in zip(self.params, self.dims, strict=True):
            self._divide(p, dim)
        memory_pool.empty_cache()  # memory of whole parameters fits no later tensor
        watch_backward(self)

    def _divide(self, p: Tensor, dim: int) -> None:
        """Keep only this rank's shard; the parameter stays the same object."""
        whole = array(p)
        begin, end = rows_of(whole.shape[dim], self.group.size, self.group.index)
        before = (slice(None),) * dim
        with no_grad():
            p.depart(leaf(np.array(whole[(*before, slice(begin, end))], order="C")))
        outer = division_of(p)
        start = tuple([begin if i == dim else 0 for i in range(whole.ndim)])
        shape, groups = whole.shape, (self.group,)
        if outer is not None:  # already a shard, as with tensor parallelism
            start = tuple([a + b for a, b in zip(outer.start, start, strict=True)])
            shape, groups = outer.shape, (*outer.groups, self.group)
        divide(p, Division(shape, start, groups))

    # -- gathering

    def begin(self) -> None:
        """Start to gather whole parameters, unless they are there or being gathered."""
        shards = [p.lazy for p in self.params]
        there = self._coming or self._held
        if not shards or (there is not None and _are_same(there[0], shards)):
            return
        self.finish()
        static = {
            "dtype": self.policy.param_dtype, "shapes": tuple(self.whole), "dims": self.dims,
            "group": self.group.number,
        }  # fmt: skip
        (ticket,) = _BEGIN.record(self.params, static)
        self._coming = shards, wrap(ticket)
        trace.now.unfinished.append(self.finish)

    def finish(self) -> None:
        """Finish a started gather, before recorded operations run or the parameters are used."""
        if self._coming is None:
            return
        (shards, ticket), self._coming = self._coming, None
        low = self.policy.param_dtype
        static = {
            "shapes": tuple(self.whole), "dims": self.dims, "group": self.group.number,
            "dtypes": tuple([low or p.dtype for p in self.params]),
        }  # fmt: skip
        *gathered, done = _END.record([ticket], static)
        await_result(done)
        self._held, self._unused = (shards, [wrap(x) for x in gathered]), True

    def gathered(self) -> list[Any]:
        """The whole parameters; read-only and without gradients."""
        if not self.params:
            return []
        self.begin()
        self.finish()
        assert self._held is not None
        if self._unused and _calls and not trace.now.depth:
            _order.append(self)
            for unit in self.following if self.ahead is None else self.ahead:
                unit.begin()
        self._unused = False
        return self._held[1]

    def release(self) -> None:
        """Free the whole parameters."""
        self.finish()
        self._held, self._unused = None, False

    def close(self) -> None:
        """End `unshard`: put the shards back."""
        if self.opened is not None:
            opened, self.opened = self.opened, None
            opened.close()

    def release_unused(self) -> None:
        """Free the whole parameters if no call has used them."""
        self.finish()
        if self._unused:
            self.release()

    def values(self, again: bool) -> dict[str, Any]:
        """The whole parameters by path; their gradients flow to the shards."""
        trained = [i for i, p in enumerate(self.params) if p.requires_grad]
        whole = list(self.gathered())
        if is_grad_enabled() and trained:
            use = self._tracked if self.syncs else self._leaves
            for i, x in zip(trained, use([whole[i] for i in trained], trained, again), strict=True):
                whole[i] = x
        by_id = {id(p): x for p, x in zip(self.params, whole, strict=True)}
        return {path: by_id[id(p)] for path, p in self.paths.items()}

    def _tracked(self, whole: Sequence[Any], trained: list[int], again: bool) -> list[Any]:
        """Whole parameters whose gradients are reduced over ranks."""
        attrs = {
            "group": self.group.number, "again": again, "reduced": self.policy.reduce_dtype,
            "replicas": self._replicas(), "divisor": self.divisor,
            "dims": tuple([self.dims[i] for i in trained]), "ahead": self.ahead_backward,
            "within": -1 if self.within is None else self.within.number,
        }  # fmt: skip
        lazies = [*[x.lazy for x in whole], *[x.lazy for x in self._receivers(trained)]]
        return list(map(wrap, record(REGISTRY["unshard"], lazies, attrs)))

    def _leaves(self, whole: Sequence[Any], trained: list[int], _: bool) -> list[Any]:
        """Whole parameters whose gradients accumulate on this rank."""
        pairs = zip(trained, whole, strict=True)
        leaves = [self._local.leaf(i, x, self.params[i].lazy) for i, x in pairs]
        self.release()
        return leaves

    @contextmanager
    def called(self) -> Iterator[dict[str, Any]]:
        """Context of a call of the module; yields the replacements of its parameters."""
        again = not self.kept and (bool(_calls) if self.again is None else self.again)
        _calls.append(self)
        try:
            yield self.values(again)
        finally:
            _calls.remove(self)
            if again and not is_grad_enabled():
                self.release()
            if not _calls:
                _end_call()

    # -- gradients

    def after_backward(self, leaves: Sequence[Lazy]) -> None:
        """Free whole parameters once a backward pass no longer needs them."""
        own = {id(x) for x in (*self.params, *self._parts.leaves())}
        if not any([x.leaf is not None and id(x.leaf()) in own for x in leaves]):
            return
        self.close()
        if not self.kept:
            self.release()
        if self._local and self.syncs:
            self._add_local()
        if self._parts and self.all_reduces:
            self._add_parts()
        receivers = (*self.params, *self._parts.leaves())
        for g in [x.grad for x in receivers if x.grad is not None][:1]:
            with no_grad():
                await_result(g.reshape(-1)[:1].lazy)  # even if this rank drops its gradients

    def _receivers(self, numbers: Sequence[int]) -> list[Any]:
        """The tensors to whose gradients those of parameters are added."""
        params = [self.params[i] for i in numbers]
        if not self._holds_parts():
            return params
        return [self._parts.leaf(i, p, p.lazy) for i, p in zip(numbers, params, strict=True)]

    def _holds_parts(self) -> bool:
        """Whether sharded gradients accumulate before they are reduced over replicas."""
        return self.replicas is not None and (bool(self._parts) or not self.all_reduces)

    def _replicas(self) -> int:
        """The group number of the replicas over which gradients are reduced now."""
        return -1 if self.replicas is None or self._holds_parts() else self.replicas.number

    def _add_local(self) -> None:
        """Reduce gradients that have accumulated on this rank."""
        sums, self._local = self._local.gradients(), Accumulation()
        receivers, dims = self._receivers(list(sums)), tuple([self.dims[i] for i in sums])
        static = {
            "counts": tuple([x.shape[d] for x, d in zip(receivers, dims, strict=True)]),
            "dims": dims, "kinds": tuple([x.dtype for x in receivers]),
            "group": self.group.number, "replicas": self._replicas(),
            "dtype": self.policy.reduce_dtype, "divisor": self.divisor,
        }  # fmt: skip
        _add(receivers, _SCATTER.record(list(sums.values()), static))

    def _add_parts(self) -> None:
        """Reduce sharded gradients over replicas, in their own type: sums of many passes."""
        assert self.replicas is not None
        sums, self._parts = self._parts.gradients(), Accumulation()
        static = {
            "group": self.replicas.number, "divisor": None if self.divisor is None else 1.0,
            "dtype": self.policy.reduce_dtype,
        }  # fmt: skip
        _add([self.params[i] for i in sums], _MEAN.record(list(sums.values()), static))

    # -- element types

    def cast_inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments of a call in the module's compute type."""
        to = self.policy.param_dtype
        if to is None or not self.policy.cast_forward_inputs:
            return args, kwargs
        return map_structure(lambda x: _cast(x, to), (args, kwargs))

    def cast_output(self, y: Any) -> Any:
        """The result of a call in the output type."""
        to = self.policy.output_dtype
        return y if to is None else map_structure(lambda x: _cast(x, to), y)

    # -- copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Unit:
        copied = memo[id(self)] = copy.copy(self)
        copied.modules = [copy.deepcopy(module, memo) for module in self.modules]
        copied.params = [copy.deepcopy(p, memo) for p in self.params]
        copied.paths = {path: copy.deepcopy(p, memo) for path, p in self.paths.items()}
        copied._coming = copied._held = copied.opened = copied.ahead = None
        copied._local, copied._parts = Accumulation(), Accumulation()
        copied.following, copied._unused = [], False
        watch_backward(copied)
        return copied


def _add(receivers: Sequence[Any], gradients: Sequence[Lazy]) -> None:
    """Add to the gradients of tensors."""
    with no_grad():
        for x, g in zip(receivers, map(wrap, gradients), strict=True):
            x.grad = g if x.grad is None else x.grad + g


def _end_call() -> None:
    """Remember the order of units for the next call, and free unused gathers."""
    begun = [unit for each in _order for unit in (each.ahead or each.following)]
    for unit in dict.fromkeys(begun):
        unit.release_unused()
    for unit, then in itertools.zip_longest(_order, _order[1:]):
        unit.following = [] if then is None else [then]
    _order.clear()


def _are_same(xs: Sequence[Lazy], ys: Sequence[Lazy]) -> bool:
    return all([x is y for x, y in zip(xs, ys, strict=True)])


def _cast(x: Any, to: DType) -> Any:
    return x.to(to) if isinstance(x, Tensor) and x.dtype.is_floating else x
