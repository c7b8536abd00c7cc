"""What ranks begin with: models of the same shapes, and of the same values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from weft.distributed.elements import array, settle, take_from_first
from weft.eager.tensor.tensor import Tensor
from weft.errors import DistributedError
from weft.ops.base import at_user_line
from weft.transport import collective
from weft.transport.group import Group


def make_alike(name: str, named: Mapping[str, Tensor], group: Group, take: bool = True) -> None:
    """Give all ranks the first one's parameters and buffers, or check that they have the same.

    Args:
        name: who asks for it, for messages.
        named: parameters and buffers by name.
        take: whether they are given; all have to have the same already if not.

    Raises:
        DistributedError: models of other shapes, or other values.
    """
    shapes = [f"{n} {t.dtype} {tuple(t.shape)}" for n, t in named.items()]
    _compare(name, group, "models", shapes)
    if take:
        take_from_first(list(named.values()), group)
        return
    digests = {n: hashlib.sha256(array(t).tobytes()).hexdigest()[:16] for n, t in named.items()}
    lines = [f"{n} {d}" for n, d in digests.items()]
    _compare(name, group, "parameters", lines)


def _compare(name: str, group: Group, title: str, lines: Sequence[str]) -> None:
    """Refuse lines that differ between ranks.

    Raises:
        DistributedError: names the first line that differs, as each rank has it.
    """
    settle()
    data = "\n".join(lines).encode()
    found = [d.decode().split("\n") for d in collective.all_gather_bytes(group, data, title)]
    for rank, other in zip(group.ranks, found, strict=True):
        if other != found[0]:
            pairs = [(a, b) for a, b in zip(found[0], other, strict=False) if a != b]
            mine, theirs = pairs[0] if pairs else (f"{len(found[0])}", f"{len(other)} tensors")
            raise DistributedError(
                f"{name}: {title} differ: rank {group.ranks[0]} has {mine}, rank {rank} has "
                f"{theirs}{at_user_line()}"
            )
