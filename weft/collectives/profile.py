"""Communication profile: each rank's cost of communication, and which ranks the others wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from weft.collectives.objects import all_gather_object
from weft.collectives.process_group import member
from weft.transport.group import Group

__all__ = ["CommunicationProfile", "RankProfile", "communication_profile"]


@dataclass(frozen=True)
class RankProfile:
    """The communication cost of one rank.

    Args:
        rank: the global rank.

    Attributes:
        calls: the number of collective calls.
        sent: bytes sent.
        seconds: time spent in calls.
        waited: seconds spent waiting for each other rank; includes the transfer of large messages.
    """

    rank: int
    calls: int
    sent: int
    seconds: float
    waited: Mapping[int, float]


@dataclass(frozen=True)
class CommunicationProfile:
    """The communication costs of all ranks of a group.

    Args:
        ranks: a profile for each rank.
    """

    ranks: tuple[RankProfile, ...]

    def waited_for(self, rank: int) -> float:
        """The total seconds for which other ranks waited for a rank."""
        return sum([r.waited.get(rank, 0.0) for r in self.ranks])

    @property
    def straggler(self) -> int:
        """The rank that the others waited for longest."""
        return max([r.rank for r in self.ranks], key=self.waited_for)

    def as_json(self) -> list[dict[str, Any]]:
        """One dictionary per rank."""
        return [asdict(r) for r in self.ranks]

    def __str__(self) -> str:
        numbers = [r.rank for r in self.ranks]
        head = "rank   calls   sent MB  in calls s  waited s for" + "".join(
            [f"{f'rank {n}':>10}" for n in numbers]
        )
        lines = [head]
        for r in self.ranks:
            waits = ["" if n == r.rank else f"{r.waited.get(n, 0.0):.3f}" for n in numbers]
            lines.append(
                f"{r.rank:4} {r.calls:7} {r.sent / 1e6:9.2f} {r.seconds:11.3f} {'':13}"
                + "".join([f"{cell:>10}" for cell in waits])
            )
        slow = self.straggler
        lines.append(f"rank {slow} was waited for longest, {self.waited_for(slow):.3f} s in all")
        return "\n".join(lines)


def communication_profile(group: Group | None = None, reset: bool = False) -> CommunicationProfile:
    """The communication costs of each rank so far; all ranks of the group call it.

    Args:
        group: the ranks; by default all.
        reset: whether to reset the counters afterwards.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> before = dist.communication_profile(reset=True)
        >>> dist.all_reduce(wf.ones(3))
        >>> dist.communication_profile().ranks[0].calls
        1
        >>> dist.destroy_process_group()
    """
    members = member(group, "communication_profile")
    tally = members.transport.tally
    own = {
        "calls": tally.all_calls, "sent": tally.all_sent, "seconds": tally.seconds,
        "waited": {str(rank): seconds for rank, seconds in tally.waited.items()},
    }  # fmt: skip
    every: list[Any] = [None] * members.size
    all_gather_object(every, own, members)
    if reset:
        tally.reset()
    return CommunicationProfile(
        tuple([_profile(rank, each) for rank, each in zip(members.ranks, every, strict=True)])
    )


def _profile(rank: int, counters: Mapping[str, Any]) -> RankProfile:
    waited = {int(r): float(seconds) for r, seconds in counters["waited"].items()}
    return RankProfile(rank, counters["calls"], counters["sent"], counters["seconds"], waited)
