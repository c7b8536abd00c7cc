"""Collectives on tensors: all members of a group call them, in the same order.

They block; with `async_op=True` they run in the background and return a `Work`. Outputs are written
in place. Collectives have no gradients.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from weft.collectives.elements import array, compute_pending, kind, put, put_all
from weft.collectives.process_group import for_members, member, root_of, seconds_of
from weft.collectives.reduce_op import ReduceOp
from weft.collectives.work import Work, done
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import as_dtype
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group
from weft.transport.reduction import check_reduction

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter",
]  # fmt: skip


@for_members
def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite each rank's tensor with the reduction over all ranks.

    All ranks get the same bits. Sums of float16 and bfloat16 are taken in float32.

    Args:
        tensor: this rank's tensor, which is overwritten.

    Raises:
        DistributedError: ranks make different calls, or one of them failed or ended.
        DTypeError: the element type does not support the reduction.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> x = wf.tensor([1.0, 2.0])
        >>> dist.all_reduce(x)
        >>> x.tolist()
        [1.0, 2.0]
        >>> dist.destroy_process_group()
    """
    members, x = member(group, "all_reduce"), array(tensor)
    check(op, x, "all_reduce")
    out = np.empty_like(x)
    what = f"all_reduce({op.value}) of {kind(x)}"
    return done(
        members, async_op, lambda: collective.all_reduce(members, x, out, op.value, what),
        lambda: put(tensor, out), [tensor],
    )  # fmt: skip


@for_members
def reduce(
    tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None, async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Overwrite the tensor of rank `dst`, or `group_dst` of the group, with the reduction.

    Args:
        tensor: this rank's tensor; overwritten on rank `dst` only.
        dst: the global rank that receives; or pass `group_dst`.
    """
    members, x = member(group, "reduce"), array(tensor)
    check(op, x, "reduce")
    root = root_of(members, dst, group_dst, "reduce")
    out = np.empty_like(x)
    what = f"reduce({op.value}) to rank {members.ranks[root]} of {kind(x)}"
    return done(
        members, async_op, lambda: collective.reduce(members, x, out, root, op.value, what),
        lambda: put(tensor, out) if members.index == root else None, [tensor],
    )  # fmt: skip


@for_members
def broadcast(
    tensor: Tensor, src: int | None = None, group: Group | None = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Overwrite each rank's tensor with that of rank `src`, or `group_src` of the group.

    Args:
        tensor: the tensor that is sent or overwritten.
        src: the global rank that sends; or pass `group_src`.
    """
    members, x = member(group, "broadcast"), array(tensor)
    root = root_of(members, src, group_src, "broadcast")
    out = x.copy() if members.index == root else np.empty_like(x)
    what = f"broadcast from rank {members.ranks[root]} of {kind(x)}"
    return done(
        members, async_op, lambda: collective.broadcast(members, out, root, what),
        lambda: None if members.index == root else put(tensor, out),
    )  # fmt: skip


@for_members
def barrier(
    group: Group | None = None, async_op: bool = False, device_ids: Any = None,
    timeout: float | timedelta | None = None,
) -> Work | None:  # fmt: skip
    """Wait until all ranks have called it.

    Args:
        device_ids: has no effect.
        timeout: seconds, or a `timedelta`; by default the group's.
    """
    del device_ids
    compute_pending()
    members = member(group, "barrier")
    return done(
        members, async_op, lambda: within(members, timeout, lambda: collective.barrier(members)),
        lambda: None,
    )  # fmt: skip


def within(group: Group, timeout: float | timedelta | None, work: Callable[[], Any]) -> Any:
    """Make a call with a timeout of its own."""
    before = group.timeout
    if timeout is not None:
        group.timeout = seconds_of(timeout)
    try:
        return work()
    finally:
        group.timeout = before


@for_members
def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite the i-th tensor of the list with the tensor of rank i.

    Args:
        tensor_list: one output for each rank.
        tensor: this rank's tensor.
    """
    members, x = member(group, "all_gather"), array(tensor)
    outs = _outputs(tensor_list, members.size, x, "all_gather")
    what = f"all_gather of {kind(x)}"
    return done(
        members, async_op, lambda: collective.all_gather(members, x, outs, what),
        lambda: put_all(tensor_list, outs), tensor_list,
    )  # fmt: skip


@for_members
def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite `output_tensor` with the tensors of all ranks, concatenated in rank order.

    Args:
        output_tensor: the output, with as many elements as all inputs.
        input_tensor: this rank's tensor.
    """
    members, x = member(group, "all_gather_into_tensor"), array(input_tensor)
    out = _joined(output_tensor, x, members.size, "all_gather_into_tensor")
    rows = list(out.reshape(members.size, -1))
    what = f"all_gather of {kind(x)}"
    return done(
        members, async_op, lambda: collective.all_gather(members, x.reshape(-1), rows, what),
        lambda: put(output_tensor, out), [output_tensor],
    )  # fmt: skip


@for_members
def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None,
    group: Group | None = None, async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Overwrite the i-th tensor of rank `dst`'s list with the tensor of rank i.

    Args:
        tensor: this rank's tensor.
        gather_list: on rank `dst` one output for each rank; else `None`.
        dst: by default 0; or `group_dst`, its rank in the group.
        group_dst: the rank in the group that receives, instead of `dst`.
    """
    members, x = member(group, "gather"), array(tensor)
    root = root_of(members, dst, group_dst, "gather", 0)
    outs = None
    if members.index == root:
        outs = _outputs(gather_list or (), members.size, x, "gather")
    what = f"gather to rank {members.ranks[root]} of {kind(x)}"
    return done(
        members, async_op, lambda: collective.gather(members, x, outs, root, what),
        lambda: put_all(gather_list or (), outs or ()) if outs is not None else None,
    )  # fmt: skip


@for_members
def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None,
    group: Group | None = None, async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Overwrite the tensor of rank i with the i-th tensor of rank `src`'s list.

    Args:
        tensor: the output.
        scatter_list: on rank `src` one input for each rank; else `None`.
        src: by default 0; or `group_src`, its rank in the group.
        group_src: the rank in the group that sends, instead of `src`.
    """
    members, x = member(group, "scatter"), array(tensor)
    root = root_of(members, src, group_src, "scatter", 0)
    xs = None
    if members.index == root:
        xs = _inputs(scatter_list or (), members.size, x, "scatter")
    out = np.empty_like(x)
    what = f"scatter from rank {members.ranks[root]} of {kind(x)}"
    return done(
        members, async_op, lambda: collective.scatter(members, xs, out, root, what),
        lambda: put(tensor, out), [tensor],
    )  # fmt: skip


@for_members
def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Overwrite the output of rank i with the reduction of the i-th tensors of all lists.

    Args:
        output: the output.
        input_list: one input for each rank.
    """
    members, x = member(group, "reduce_scatter"), array(output)
    check(op, x, "reduce_scatter")
    xs = _inputs(input_list, members.size, x, "reduce_scatter")
    return _reduce_scatter(members, xs, output, op, x, async_op)


@for_members
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group | None = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Overwrite the output of rank i with the reduction of all inputs' i-th shards.

    Args:
        output: the output.
        input: the inputs for all ranks, in rank order.
    """
    members, x = member(group, "reduce_scatter_tensor"), array(output)
    check(op, x, "reduce_scatter_tensor")
    whole = array(input)
    _joined(input, x, members.size, "reduce_scatter_tensor")
    return _reduce_scatter(members, list(whole.reshape(members.size, -1)), output, op, x, async_op)


def _reduce_scatter(
    group: Group, xs: Sequence[Array], output: Tensor, op: ReduceOp, like: Array, later: bool
) -> Work | None:
    out = np.empty_like(like)
    what = f"reduce_scatter({op.value}) of {kind(like)}"
    return done(
        group, later, lambda: collective.reduce_scatter(group, xs, out, op.value, what),
        lambda: put(output, out), [output],
    )  # fmt: skip


@for_members
def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
    group: Group | None = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send the i-th input to rank i, and overwrite the i-th output with what rank i sends.

    Args:
        output_tensor_list: one output for each rank.
        input_tensor_list: one input for each rank.
    """
    members = member(group, "all_to_all")
    counts = (len(input_tensor_list), len(output_tensor_list))
    if counts != (members.size, members.size):
        raise ShapeError.here(
            f"all_to_all: expected lists of {members.size}, got {counts[0]} inputs and {counts[1]} "
            f"outputs"
        )
    xs = [array(x) for x in input_tensor_list]
    outs = [np.empty_like(array(y)) for y in output_tensor_list]
    what = f"all_to_all of {as_dtype(xs[0].dtype)}"
    return done(
        members, async_op, lambda: collective.all_to_all(members, xs, outs, what),
        lambda: put_all(output_tensor_list, outs), output_tensor_list,
    )  # fmt: skip


@for_members
def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Group | None = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send the i-th split of the input's rows to rank i; the output concatenates what arrives.

    Args:
        output: the output.
        input: rows for all ranks, in rank order.
        output_split_sizes: the number of rows from each rank; by default equal.
        input_split_sizes: the number of rows for each rank; by default equal.
    """
    members, x, out = member(group, "all_to_all_single"), array(input), np.empty_like(array(output))
    xs = _split(x, input_split_sizes, members.size)
    outs = _split(out, output_split_sizes, members.size)
    what = f"all_to_all of {as_dtype(x.dtype)}"
    return done(
        members, async_op, lambda: collective.all_to_all(members, xs, outs, what),
        lambda: put(output, out), [output],
    )  # fmt: skip


def _split(x: Array, sizes: Sequence[int] | None, count: int) -> list[Array]:
    rows = x.shape[0] if x.ndim else 0
    if sizes is None:
        if rows % count:
            raise ShapeError.here(
                f"all_to_all_single: expected rows in {count} equal parts, got {rows}"
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ShapeError.here(
            f"all_to_all_single: expected {count} sizes that add up to {rows} rows, got "
            f"{list(sizes)}"
        )
    ends = np.cumsum([0, *sizes])
    return [x[a:b] for a, b in itertools.pairwise(ends)]


@for_members
def monitored_barrier(
    group: Group | None = None, timeout: float | timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:  # fmt: skip
    """A barrier whose error names the ranks that are missing.

    Args:
        timeout: seconds, or a `timedelta`; by default the group's.
        wait_all_ranks: has no effect: the error always names all missing ranks.

    Raises:
        DistributedTimeoutError: ranks are missing after `timeout`.
    """
    del wait_all_ranks
    compute_pending()
    members = member(group, "monitored_barrier")
    rows = list(np.zeros((members.size, 1), np.uint8))
    own = np.zeros(1, np.uint8)
    within(members, timeout, lambda: collective.all_gather(members, own, rows, "monitored_barrier"))


def check(op: ReduceOp, x: Array, name: str) -> None:
    """Check that an element type supports a reduction.

    Raises:
        ArgumentError: `op` is not a `ReduceOp`.
        DTypeError: the element type does not support it.
    """
    if not isinstance(op, ReduceOp):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError.here(f"{name}: expected a ReduceOp, got {op!r}")
    try:
        check_reduction(op.value, x.dtype)
    except DTypeError as error:
        raise DTypeError.here(f"{name}: {error}") from None


def _outputs(tensors: Sequence[Tensor], count: int, like: Array, name: str) -> list[Array]:
    return [np.empty_like(x) for x in _inputs(tensors, count, like, name)]


def _inputs(tensors: Sequence[Tensor], count: int, like: Array, name: str) -> list[Array]:
    arrays = [array(x) for x in tensors]
    wrong = [x for x in arrays if (x.dtype, x.shape) != (like.dtype, like.shape)]
    if len(arrays) != count or wrong:
        got = kind(wrong[0]) if wrong else f"{len(arrays)} tensors"
        raise ShapeError.here(f"{name}: expected a list of {count} tensors {kind(like)}, got {got}")
    return arrays


def _joined(tensor: Tensor, part: Array, count: int, name: str) -> Array:
    """An output for `count` shards; checks that the tensor has its shape."""
    x: Any = array(tensor)
    if x.dtype != part.dtype or x.size != count * part.size:
        raise ShapeError.here(f"{name}: expected {count} times {kind(part)}, got {kind(x)}")
    return np.empty_like(x)
