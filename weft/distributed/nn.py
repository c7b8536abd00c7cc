"""Collectives that return new tensors, through which gradients flow: `torch.distributed.nn`.

A gradient is that of the sum of all ranks' losses. All ranks must take part in the backward pass,
in the same order.

>>> import weft as wf, weft.distributed as dist
>>> from weft.distributed.nn import all_reduce
>>> dist.init_process_group()
>>> x = wf.ones(2, requires_grad=True)
>>> all_reduce(x * 3).sum().backward()
>>> x.grad.tolist()
[3.0, 3.0]
>>> dist.destroy_process_group()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.collectives import collective
from weft.collectives.process_group import get_rank, member
from weft.collectives.reduce_op import ReduceOp
from weft.collectives.subgroup import group as group
from weft.documentation import arguments_of
from weft.eager.functions.api import Tensor, stack, zeros_like
from weft.eager.tensor.autograd.custom_function import Function as Function
from weft.errors import ArgumentError
from weft.transport.group import Group

__all__ = [
    "Function", "ReduceOp", "all_gather", "all_reduce", "all_to_all", "all_to_all_single",
    "broadcast", "gather", "group", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def _reduced(x: Tensor, op: ReduceOp, members: Group) -> Tensor:
    y = x.detach().clone()
    collective.all_reduce(y, op, members)
    return y


def _exchanged(xs: Sequence[Tensor], members: Group) -> list[Tensor]:
    """The tensors that the ranks send to this one; `xs` has as many, of the same shapes."""
    ys = [zeros_like(x) for x in xs]
    collective.all_to_all(ys, [x.detach() for x in xs], members)
    return ys


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, members: Group, x: Tensor) -> Any:
        ctx.op, ctx.members = op, members
        return _reduced(x, op, members)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None, _reduced(g, ctx.op, ctx.members)


class _FromRoot(Function):
    @staticmethod
    def forward(ctx: Any, root: int, members: Group, x: Tensor) -> Any:
        ctx.root, ctx.members = root, members
        y = x.detach().clone()
        collective.broadcast(y, root, members)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        whole = _reduced(g, ReduceOp.SUM, ctx.members)
        return None, None, whole if get_rank() == ctx.root else zeros_like(g)


class _ToRoot(Function):
    @staticmethod
    def forward(ctx: Any, root: int, op: ReduceOp, members: Group, x: Tensor) -> Any:
        ctx.root, ctx.members = root, members
        y = x.detach().clone()
        collective.reduce(y, root, op, members)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        y = g.detach().clone()
        collective.broadcast(y, ctx.root, ctx.members)
        return None, None, None, y


class _Exchange(Function):
    @staticmethod
    def forward(ctx: Any, members: Group, *xs: Tensor) -> Any:
        ctx.members = members
        return tuple(_exchanged(xs, members))

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        return (None, *_exchanged(gs, ctx.members))


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group | None = None) -> Tensor:
    """The reduction of all ranks' tensors.

    Args:
        tensor: this rank's tensor.
        op: a sum or a mean.
        group: the ranks; by default all.
    """
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ArgumentError.here(f"distributed.nn.all_reduce: expected a sum or a mean, got {op}")
    return _AllReduce.apply(op, member(group, "all_reduce"), tensor)


def broadcast(tensor: Tensor, src: int, group: Group | None = None) -> Tensor:
    """The tensor of rank `src`.

    Args:
        tensor: the tensor that is sent; on other ranks one of the same shape.
        src: the global rank that sends.
        group: the ranks; by default all.
    """
    return _FromRoot.apply(src, member(group, "broadcast"), tensor)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Group | None = None
) -> Tensor:
    """The sum of all ranks' tensors on rank `dst`; on others their own.

    Args:
        tensor: this rank's tensor.
        dst: the global rank that receives.
        op: the sum.
        group: the ranks; by default all.
    """
    if op is not ReduceOp.SUM:
        raise ArgumentError.here(f"distributed.nn.reduce: expected a sum, got {op}")
    return _ToRoot.apply(dst, op, member(group, "reduce"), tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
    group: Group | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The tensors that the ranks send to this one.

    Args:
        output_tensor_list: ignored; results are new.
        input_tensor_list: a tensor for each rank, all of one shape.
        group: the ranks; by default all.
    """
    del output_tensor_list
    return _Exchange.apply(member(group, "all_to_all"), *input_tensor_list)


def all_to_all_single(
    output: Any, input: Tensor, output_split_sizes: None = None, input_split_sizes: None = None,
    group: Group | None = None,
) -> Tensor:  # fmt: skip
    """The same of equal parts of a tensor, along its first dimension.

    Args:
        output: ignored; the result is new.
        input: this rank's tensor.
        output_split_sizes, input_split_sizes: must be `None`.
        group: the ranks; by default all.
    """
    if output_split_sizes is not None or input_split_sizes is not None:
        raise ArgumentError.here("distributed.nn.all_to_all_single: expected no split sizes")
    ranks = member(group, "all_to_all_single").size
    parts = input.view(ranks, input.shape[0] // ranks, *input.shape[1:]).unbind(0)
    return stack(list(all_to_all((), parts, group))).view(input.shape)


@arguments_of(all_reduce)
def all_gather(tensor: Tensor, group: Group | None = None) -> tuple[Tensor, ...]:
    """All ranks' tensors."""
    return all_to_all((), [tensor] * member(group, "all_gather").size, group)


def reduce_scatter(
    output: Any, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None,
) -> Tensor:  # fmt: skip
    """The sum of what all ranks have for this one.

    Args:
        output: ignored; the result is new.
        input_list: a tensor for each rank.
        op: a sum or a mean.
        group: the ranks; by default all.
    """
    every = stack(list(all_to_all((), input_list, group)))
    return every.mean(0) if op is ReduceOp.AVG else every.sum(0)


@arguments_of(reduce)
def gather(tensor: Tensor, dst: int = 0, group: Group | None = None) -> tuple[Tensor, ...]:
    """All ranks' tensors, on rank `dst`; zeros on others."""
    ranks = member(group, "gather").ranks
    return all_to_all((), [tensor if r == dst else zeros_like(tensor) for r in ranks], group)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group | None = None) -> Tensor:
    """This rank's tensor of those of rank `src`.

    Args:
        tensors: a tensor for each rank; used on rank `src`.
        src: the global rank that sends.
        group: the ranks; by default all.
    """
    members = member(group, "scatter")
    return all_to_all((), tensors, group)[members.ranks.index(src)]
