"""A check that ranks start with models of the same shapes and values."""

from __future__ import annotations

from collections.abc import Mapping

from weft.collectives.agreement import check_same, difference, digests
from weft.collectives.elements import take_from_first
from weft.collectives.recorded import run_pending_collectives
from weft.eager.record.pending.access import array_of
from weft.eager.tensor.tensor import Tensor
from weft.errors import DistributedError
from weft.transport.group import Group


def make_alike(name: str, named: Mapping[str, Tensor], group: Group, take: bool = True) -> None:
    """Copy the first rank's parameters and buffers to all ranks, or check that they are the same.

    Args:
        name: the caller, for error messages.
        named: parameters and buffers by name.
        take: whether to copy; if not, values that differ are an error.

    Raises:
        DistributedError: shapes or values differ between ranks.
    """
    if not take:
        told = alike_or_told(name, named, group)
        if told:
            raise DistributedError(told)
        return
    _check_shapes(name, named, group)
    take_from_first(list(named.values()), group)


def alike_or_told(name: str, named: Mapping[str, Tensor], group: Group) -> str:
    """A description of how values differ between ranks; empty if they are equal.

    Raises:
        DistributedError: shapes differ.
    """
    _check_shapes(name, named, group)
    arrays = {n: array_of(t.lazy) for n, t in named.items()}
    return difference(name, group, "parameters", digests(arrays))


def _check_shapes(name: str, named: Mapping[str, Tensor], group: Group) -> None:
    run_pending_collectives()
    shapes = [f"{n} {t.dtype} {tuple(t.shape)}" for n, t in named.items()]
    check_same(name, group, "models", shapes)
