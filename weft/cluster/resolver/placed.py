"""Ranks of a launcher as tasks of jobs: addresses by host, jobs in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError


def addresses_of(hosts: Sequence[str], port_base: int) -> list[str]:
    """An address for each rank, given its host: those of one host have ports from the base on.

    >>> addresses_of(["a", "a", "b"], 8888)
    ['a:8888', 'a:8889', 'b:8888']
    """
    used: dict[str, int] = {}
    found: list[str] = []
    for host in hosts:
        found.append(f"{host}:{port_base + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return found


def divided(
    addresses: Sequence[str], jobs: Mapping[str, int] | None, what: str
) -> tuple[ClusterSpec, list[tuple[str, int]]]:
    """Jobs of the given sizes, sorted by name, of ranks in order; and the task that each rank is.

    Raises:
        ArgumentError: the jobs have another number of tasks than there are ranks.
    """
    sizes = {"worker": len(addresses)} if jobs is None else dict(jobs)
    if sum(sizes.values()) != len(addresses):
        raise ArgumentError.here(
            f"{what}: expected jobs of {len(addresses)} tasks in all, the number of ranks, "
            f"got {sizes}"
        )
    tasks = [(job, index) for job in sorted(sizes) for index in range(sizes[job])]
    lists: dict[str, list[str]] = {job: [] for job in sorted(sizes)}
    for (job, _), address in zip(tasks, addresses, strict=True):
        lists[job].append(address)
    return ClusterSpec(lists), tasks
