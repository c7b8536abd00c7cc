"""What ranks begin with: models of the same shapes, and of the same values."""

from __future__ import annotations

from collections.abc import Mapping

from weft.distributed.agreement import check_same, digests
from weft.distributed.elements import take_from_first
from weft.distributed.recorded import settle
from weft.eager.record.access import array_of
from weft.eager.tensor.tensor import Tensor
from weft.transport.group import Group


def make_alike(name: str, named: Mapping[str, Tensor], group: Group, take: bool = True) -> None:
    """Copy the first rank's parameters and buffers to all ranks, or check that they are the same.

    Args:
        name: the caller's, for messages.
        named: parameters and buffers by name.
        take: whether to copy; if not, values that differ are an error.

    Raises:
        DistributedError: shapes or values differ between ranks.
    """
    shapes = [f"{n} {t.dtype} {tuple(t.shape)}" for n, t in named.items()]
    settle()
    check_same(name, group, "models", shapes)
    if take:
        take_from_first(list(named.values()), group)
        return
    arrays = {n: array_of(t.lazy) for n, t in named.items()}
    check_same(name, group, "parameters", digests(arrays))
