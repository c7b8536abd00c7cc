"""Point-to-point messages between ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.distributed.elements import array, kind, put
from weft.distributed.process_group import index_of, member
from weft.distributed.work import Work
from weft.eager.tensor.tensor import Tensor
from weft.transport.group import Group
from weft.transport.message import receive_from, send_to


def send(tensor: Tensor, dst: int, group: Group | None = None, tag: int = 0) -> None:
    """Send a tensor to rank `dst`, which calls `recv` with one of the same type and shape."""
    isend(tensor, dst, group, tag).wait()


def recv(tensor: Tensor, src: int, group: Group | None = None, tag: int = 0) -> int:
    """Receive a tensor from rank `src` in place; returns `src`."""
    irecv(tensor, src, group, tag).wait()
    return src


def isend(tensor: Tensor, dst: int, group: Group | None = None, tag: int = 0) -> Work:
    """Start to send; the tensor may be changed immediately."""
    found, x = member(group, "send"), array(tensor).copy()
    peer = index_of(found, dst, "send")
    future = send_to(found, x, peer, tag, f"send to rank {dst} of {kind(x)}")
    return Work(future, lambda: None)


def irecv(tensor: Tensor, src: int, group: Group | None = None, tag: int = 0) -> Work:
    """Start to receive; the tensor changes in `Work.wait`."""
    found, out = member(group, "recv"), np.empty_like(array(tensor))
    peer = index_of(found, src, "recv")
    future = receive_from(found, out, peer, tag, f"recv from rank {src} of {kind(out)}")
    return Work(future, lambda: put(tensor, out))


@dataclass(frozen=True)
class P2POp:
    """One message of `batch_isend_irecv`: `isend` or `irecv`, a tensor and the other rank."""

    op: Callable[..., Work]
    tensor: Tensor
    peer: int
    group: Group | None = None
    tag: int = 0


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages; their order may differ between ranks."""
    return [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
