"""This process's place, as told by a launcher: its number on its host, and its cores.

Read from the environment: MPICH's, Open MPI's and PMIx's launchers and Slurm's `srun` each have
their own names. No MPI is loaded here.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

MARK: Final = "LAUNCHED_BY_WEFT"
"""Environment variable in a job of `weft launch`: a folder of its own, where failures are noted."""
KEPT: Final = "KEPT_BY_WEFT"
"""The same in a job that may restart: a folder that stays until it has ended for good."""
PINNED: Final = "PINNED_BY_WEFT"
"""The same: whether each rank is to pin itself to its share of the cores, or has done so."""
ASKED, DONE = "1", "done"
_OPEN_MPI: Final = ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
LAUNCHERS: Final = (
    ("PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH, and Slurm's pmi2
    ("PMIX_RANK", *_OPEN_MPI),
    ("OMPI_COMM_WORLD_RANK", *_OPEN_MPI),
)
"""Environment variables of MPI launchers: rank; rank on the host, number of ranks there."""
SIZES: Final = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
"""Environment variables of the rank and the number of ranks."""
_REPEATED: Final = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def launched() -> bool:
    """Whether a launcher of MPI has started this process."""
    return any(names[0] in os.environ for names in LAUNCHERS)


def local_rank(env: Mapping[str, str] | None = None) -> int:
    """This process's number among those on its host, by the launcher; 0 if unknown."""
    found = os.environ if env is None else env
    names = [*[names[1] for names in LAUNCHERS], "SLURM_LOCALID"]
    return next((int(found[name]) for name in names if name in found), 0)


def local_size(env: Mapping[str, str] | None = None) -> int:
    """How many processes there are on this host, by the launcher; 1 if unknown."""
    found = os.environ if env is None else env
    names = [names[2] for names in LAUNCHERS]
    return next((int(found[name]) for name in names if name in found), _of_slurm(found))


def name_ranks() -> None:
    """Say in the environment what `torchrun` says there, for programs that read it.

    `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE` and `GROUP_RANK`, the number of the
    machine, where a launcher of MPI says them.
    """
    for rank, size in SIZES:
        if rank in os.environ and size in os.environ:
            for name, value in (
                ("RANK", os.environ[rank]), ("WORLD_SIZE", os.environ[size]),
                ("LOCAL_RANK", local_rank()), ("LOCAL_WORLD_SIZE", local_size()),
                ("GROUP_RANK", int(os.environ[rank]) // local_size()),
            ):  # fmt: skip
                os.environ.setdefault(name, str(value))


def _of_slurm(env: Mapping[str, str]) -> int:
    """Slurm lists tasks by node, as `2(x3),1`: two on each of three nodes, one on the last."""
    text, node = env.get("SLURM_STEP_TASKS_PER_NODE"), env.get("SLURM_NODEID")
    if text is None or node is None:
        return 1
    counts = [
        int(count) for count, times in _REPEATED.findall(text) for _ in range(int(times or 1))
    ]
    return counts[int(node)] if int(node) < len(counts) else 1


def tasks_without_mpi(env: Mapping[str, str] | None = None) -> int:
    """How many tasks `srun` has started without any MPI bootstrap; 1 if none."""
    found = os.environ if env is None else env
    if any(names[0] in found for names in LAUNCHERS):
        return 1
    return int(found.get("SLURM_STEP_NUM_TASKS", 1))


def cores() -> list[int]:
    """The cores that this process may run on, those of one package or core adjacent."""
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    return sorted(os.sched_getaffinity(0), key=_place)


def _place(core: int) -> tuple[int, int, int]:
    folder = Path(f"/sys/devices/system/cpu/cpu{core}/topology")
    with contextlib.suppress(OSError, ValueError):
        package, number = [
            int((folder / name).read_text()) for name in ("physical_package_id", "core_id")
        ]
        return package, number, core
    return 0, core, core


def core_count() -> int:
    """How many cores this process may use: its share of the host's cores that all may run on.

    A launcher that pins each process to cores of its own has divided them already.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count = count or 1
    if os.environ.get(PINNED) == DONE:
        return count
    whole = MARK in os.environ or count == os.cpu_count()
    return max(1, count // local_size()) if whole else count


def is_crowded() -> bool:
    """Whether there are more processes on this host than cores."""
    return os.environ.get(PINNED) != DONE and local_size() > len(cores())


def pin(threads: int) -> list[int]:
    """Pins this process to its share of the host's cores, if `weft launch` asks for that.

    Args:
        threads: threads of the process; nothing is pinned if it has more than the share.

    Returns:
        The cores; none if nothing is pinned.
    """
    asked = os.environ.get(PINNED) == ASKED and hasattr(os, "sched_setaffinity")
    share = _share(cores(), local_rank(), local_size())
    if not asked or local_size() == 1 or not 0 < threads <= len(share):
        return []
    os.environ[PINNED] = DONE  # processes that this one starts share its cores
    for thread in _threads():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(thread, share)
    return share


def _share(all_cores: list[int], rank: int, size: int) -> list[int]:
    """Part `rank` of `size` equal parts.

    Example:
        >>> _share([0, 4, 1, 5, 2], 1, 2)
        [1, 5]
    """
    count = len(all_cores) // size
    return all_cores[rank * count : (rank + 1) * count]


def _threads() -> Iterator[int]:
    """The threads of this process, as Linux numbers them."""
    for folder in Path("/proc/self/task").glob("[0-9]*"):
        yield int(folder.name)
