"""Point-to-point messages between ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.collectives.elements import array, kind, put
from weft.collectives.process_group import for_members, member, root_of, warn_outside
from weft.collectives.work import Work
from weft.documentation import arguments_of
from weft.eager.tensor.tensor import Tensor
from weft.transport.group import Group
from weft.transport.message import receive_from, receive_from_any, send_to

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


@for_members
def send(
    tensor: Tensor, dst: int | None = None, group: Group | None = None, tag: int = 0,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Send a tensor to rank `dst`, which calls `recv` with one of the same type and shape.

    Args:
        tensor: what is sent.
        dst: the global rank that receives; or pass `group_dst`.
        group: the group of both ranks; by default all.
    """
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(
    tensor: Tensor, src: int | None = None, group: Group | None = None, tag: int = 0,
    group_src: int | None = None,
) -> int:  # fmt: skip
    """Receive a tensor in place from rank `src`, or from the first that sends; returns the rank.

    Args:
        tensor: the output; its shape and type must be those of the sent tensor.
        src: the global rank that sends; or pass `group_src`; by default the first that sends.
        group: the group of both ranks; by default all.
        tag: must be equal on both ranks.
        group_src: its rank in the group.
    """
    if isinstance(group, Group) and group.index < 0:
        warn_outside(group, "recv")
        return -1
    if src is not None or group_src is not None:
        members = member(group, "recv")
        irecv(tensor, src, group, tag, group_src).wait()
        return members.ranks[root_of(members, src, group_src, "recv")]
    members, out = member(group, "recv"), np.empty_like(array(tensor))
    sender = receive_from_any(members, out, tag, f"recv from any rank of {kind(out)}")
    put(tensor, out)
    return sender


@for_members
@arguments_of(send)
def isend(
    tensor: Tensor, dst: int | None = None, group: Group | None = None, tag: int = 0,
    group_dst: int | None = None,
) -> Work:  # fmt: skip
    """Start to send; the tensor may be changed immediately."""
    members, x = member(group, "send"), array(tensor).copy()
    peer = root_of(members, dst, group_dst, "send")
    future = send_to(members, x, peer, tag, f"send to rank {members.ranks[peer]} of {kind(x)}")
    return Work(future, lambda: None)


@for_members
@arguments_of(recv)
def irecv(
    tensor: Tensor, src: int | None = None, group: Group | None = None, tag: int = 0,
    group_src: int | None = None,
) -> Work:  # fmt: skip
    """Start to receive; the tensor changes in `Work.wait`."""
    members, out = member(group, "recv"), np.empty_like(array(tensor))
    peer = root_of(members, src, group_src, "recv")
    future = receive_from(
        members, out, peer, tag, f"recv from rank {members.ranks[peer]} of {kind(out)}"
    )
    return Work(future, lambda: put(tensor, out))


@dataclass(frozen=True)
class P2POp:
    """One message of `batch_isend_irecv`: `isend` or `irecv`, a tensor and the other rank.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent, or the output.
        peer: the global rank of the other end; or pass `group_peer`.
        group: the group of both ranks; by default all.
        tag: must be equal on both ranks.
        group_peer: its rank in the group.
    """

    op: Callable[..., Work]
    tensor: Tensor
    peer: int | None = None
    group: Group | None = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages; their order may differ between ranks.

    Args:
        p2p_op_list: the messages.
    """
    return [
        each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        for each in p2p_op_list
    ]
