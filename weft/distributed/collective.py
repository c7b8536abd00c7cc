"""Collectives on tensors: all members of a group call them, in the same order.

They block; with `async_op=True` they run in the background and return a `Work` to wait for. Outputs
are written in place. None of them has a gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from weft.distributed.elements import array, kind, put, put_all, settle
from weft.distributed.process_group import index_of, member
from weft.distributed.reduce_op import ReduceOp
from weft.distributed.work import Work, done
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import as_dtype
from weft.ops.base import at_user_line
from weft.transport import collective
from weft.transport.base import Array
from weft.transport.group import Group
from weft.transport.reduction import check_reduction


def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite each rank's tensor with the reduction over all ranks.

    All ranks get the same bits. Sums of float16 and bfloat16 are taken in float32.

    Raises:
        DistributedError: ranks make different calls, or one of them failed or ended.
        DTypeError: the element type does not have the reduction.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> x = wf.tensor([1.0, 2.0])
        >>> dist.all_reduce(x)
        >>> x.tolist()
        [1.0, 2.0]
        >>> dist.destroy_process_group()
    """
    found, x = member(group, "all_reduce"), array(tensor)
    check(op, x, "all_reduce")
    out = np.empty_like(x)
    what = f"all_reduce({op.value}) of {kind(x)}"
    return done(
        found, async_op, lambda: collective.all_reduce(found, x, out, op.value, what),
        lambda: put(tensor, out),
    )  # fmt: skip


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Group | None = None
) -> None:
    """Overwrite the tensor of rank `dst` with the reduction over all ranks."""
    found, x = member(group, "reduce"), array(tensor)
    check(op, x, "reduce")
    root = index_of(found, dst, "reduce")
    out = np.empty_like(x)
    what = f"reduce({op.value}) to rank {dst} of {kind(x)}"
    collective.reduce(found, x, out, root, op.value, what)
    if found.index == root:
        put(tensor, out)


def broadcast(
    tensor: Tensor,
    src: int,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite each rank's tensor with that of rank `src`."""
    found, x = member(group, "broadcast"), array(tensor)
    root = index_of(found, src, "broadcast")
    out = x.copy() if found.index == root else np.empty_like(x)
    what = f"broadcast from rank {src} of {kind(x)}"
    return done(
        found, async_op, lambda: collective.broadcast(found, out, root, what),
        lambda: None if found.index == root else put(tensor, out),
    )  # fmt: skip


def barrier(
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Wait until all ranks have called it."""
    settle()
    found = member(group, "barrier")
    return done(found, async_op, lambda: collective.barrier(found), lambda: None)


def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite the i-th tensor of the list with the tensor of rank i."""
    found, x = member(group, "all_gather"), array(tensor)
    outs = _outputs(tensor_list, found.size, x, "all_gather")
    what = f"all_gather of {kind(x)}"
    return done(
        found, async_op, lambda: collective.all_gather(found, x, outs, what),
        lambda: put_all(tensor_list, outs),
    )  # fmt: skip


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite `output_tensor` with the tensors of all ranks, concatenated in rank order."""
    found, x = member(group, "all_gather_into_tensor"), array(input_tensor)
    out = _joined(output_tensor, x, found.size, "all_gather_into_tensor")
    rows = list(out.reshape(found.size, -1))
    what = f"all_gather of {kind(x)}"
    return done(
        found, async_op, lambda: collective.all_gather(found, x.reshape(-1), rows, what),
        lambda: put(output_tensor, out),
    )  # fmt: skip


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0,
    group: Group | None = None,
) -> None:  # fmt: skip
    """Overwrite the i-th tensor of rank `dst`'s list with the tensor of rank i."""
    found, x = member(group, "gather"), array(tensor)
    root = index_of(found, dst, "gather")
    outs = None
    if found.index == root:
        outs = _outputs(gather_list or (), found.size, x, "gather")
    collective.gather(found, x, outs, root, f"gather to rank {dst} of {kind(x)}")
    for each, out in zip(gather_list or (), outs or (), strict=True):
        put(each, out)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0,
    group: Group | None = None,
) -> None:  # fmt: skip
    """Overwrite the tensor of rank i with the i-th tensor of rank `src`'s list."""
    found, x = member(group, "scatter"), array(tensor)
    root = index_of(found, src, "scatter")
    xs = None
    if found.index == root:
        xs = _inputs(scatter_list or (), found.size, x, "scatter")
    out = np.empty_like(x)
    collective.scatter(found, xs, out, root, f"scatter from rank {src} of {kind(x)}")
    put(tensor, out)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None,
) -> None:  # fmt: skip
    """Overwrite the output of rank i with the reduction of the i-th tensors of all lists."""
    found, x = member(group, "reduce_scatter"), array(output)
    check(op, x, "reduce_scatter")
    xs = _inputs(input_list, found.size, x, "reduce_scatter")
    _reduce_scatter(found, xs, output, op, x, False)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Overwrite the output of rank i with the reduction of the i-th part of all inputs."""
    found, x = member(group, "reduce_scatter_tensor"), array(output)
    check(op, x, "reduce_scatter_tensor")
    whole = array(input)
    _joined(input, x, found.size, "reduce_scatter_tensor")
    return _reduce_scatter(found, list(whole.reshape(found.size, -1)), output, op, x, async_op)


def _reduce_scatter(
    group: Group, xs: Sequence[Array], output: Tensor, op: ReduceOp, like: Array, later: bool
) -> Work | None:
    out = np.empty_like(like)
    what = f"reduce_scatter({op.value}) of {kind(like)}"
    return done(
        group, later, lambda: collective.reduce_scatter(group, xs, out, op.value, what),
        lambda: put(output, out),
    )  # fmt: skip


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
    group: Group | None = None,
) -> None:  # fmt: skip
    """Send the i-th input to rank i, and overwrite the i-th output with what rank i sends."""
    found = member(group, "all_to_all")
    counts = (len(input_tensor_list), len(output_tensor_list))
    if counts != (found.size, found.size):
        raise ShapeError(
            f"all_to_all: expected lists of {found.size}, got {counts[0]} inputs and {counts[1]} "
            f"outputs{at_user_line()}"
        )
    xs = [array(x) for x in input_tensor_list]
    outs = [np.empty_like(array(y)) for y in output_tensor_list]
    collective.all_to_all(found, xs, outs, f"all_to_all of {as_dtype(xs[0].dtype)}")
    put_all(output_tensor_list, outs)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send the i-th part of the input's rows to rank i; the output concatenates what ranks send.

    Args:
        output_split_sizes: the number of rows from each rank; by default equal.
        input_split_sizes: the number of rows for each rank; by default equal.
    """
    found, x, out = member(group, "all_to_all_single"), array(input), np.empty_like(array(output))
    xs = _split(x, input_split_sizes, found.size)
    outs = _split(out, output_split_sizes, found.size)
    what = f"all_to_all of {as_dtype(x.dtype)}"
    return done(
        found, async_op, lambda: collective.all_to_all(found, xs, outs, what),
        lambda: put(output, out),
    )  # fmt: skip


def _split(x: Array, sizes: Sequence[int] | None, count: int) -> list[Array]:
    rows = x.shape[0] if x.ndim else 0
    if sizes is None:
        if rows % count:
            raise ShapeError(
                f"all_to_all_single: expected rows in {count} equal parts, got {rows}"
                f"{at_user_line()}"
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ShapeError(
            f"all_to_all_single: expected {count} sizes that add up to {rows} rows, got "
            f"{list(sizes)}{at_user_line()}"
        )
    ends = np.cumsum([0, *sizes])
    return [x[a:b] for a, b in itertools.pairwise(ends)]


def monitored_barrier(group: Group | None = None, timeout: float | timedelta | None = None) -> None:
    """A barrier whose error names the ranks that are missing.

    Args:
        timeout: seconds, or a `timedelta`; by default the group's.

    Raises:
        DistributedTimeoutError: ranks are missing after `timeout`.
    """
    settle()
    found = member(group, "monitored_barrier")
    before = found.timeout
    if timeout is not None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        found.timeout = float(seconds)
    try:
        rows = list(np.zeros((found.size, 1), np.uint8))
        collective.all_gather(found, np.zeros(1, np.uint8), rows, "monitored_barrier")
    finally:
        found.timeout = before


def check(op: ReduceOp, x: Array, name: str) -> None:
    """Check that an element type has a reduction.

    Raises:
        ArgumentError: `op` is not a `ReduceOp`.
        DTypeError: the element type does not have it.
    """
    if not isinstance(op, ReduceOp):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{name}: expected a ReduceOp, got {op!r}{at_user_line()}")
    try:
        check_reduction(op.value, x.dtype)
    except DTypeError as error:
        raise DTypeError(f"{name}: {error}{at_user_line()}") from None


def _outputs(tensors: Sequence[Tensor], count: int, like: Array, name: str) -> list[Array]:
    return [np.empty_like(x) for x in _inputs(tensors, count, like, name)]


def _inputs(tensors: Sequence[Tensor], count: int, like: Array, name: str) -> list[Array]:
    found = [array(x) for x in tensors]
    wrong = [x for x in found if (x.dtype, x.shape) != (like.dtype, like.shape)]
    if len(found) != count or wrong:
        got = kind(wrong[0]) if wrong else f"{len(found)} tensors"
        raise ShapeError(
            f"{name}: expected a list of {count} tensors {kind(like)}, got {got}{at_user_line()}"
        )
    return found


def _joined(tensor: Tensor, part: Array, count: int, name: str) -> Array:
    """An output for `count` parts; checks that the tensor has its shape."""
    x: Any = array(tensor)
    if x.dtype != part.dtype or x.size != count * part.size:
        raise ShapeError(
            f"{name}: expected {count} times {kind(part)}, got {kind(x)}{at_user_line()}"
        )
    return np.empty_like(x)
