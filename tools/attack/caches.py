"""Hostile code caches: results equal those of a clean cache, and the user's files are kept."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.attack import identity
from tools.attack.isolated import Ended, Fork, forked
from tools.attack.mutation import mutated
from tools.attack.program import PROGRAMS, result
from tools.attack.verdict import HANG, OTHER, WRONG, Case, Verdict
from weft.runtime.compilation.cache import Cache

Random = np.random.Generator
SIZE = 9
PATIENCE = 40.0
HEADER = 72  # bytes before an entry's content: most damage is done there
ANOTHER = 12345  # a user's number
FOLDER = Path("cache")
USERS = {
    "notes.txt": b"keep me", "main.o": b"\x7fELF of mine", "model.safetensors": b"x" * 5000,
    ".hidden": b"", "WEFT": b"WEFT\x01\x00\x00\x00",
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """What a process encounters.

    Attributes:
        cache: the knob's value.
        before: done in the process first.
        during: done repeatedly from here meanwhile.
        check: returns what is wrong afterwards, if anything.
    """

    cache: str = str(FOLDER)
    before: Callable[[], object] | None = None
    during: Callable[[], object] | None = None
    check: Callable[[], str] = str


Entries = dict[str, bytes]
Stage = Callable[[Random, Entries], Scene]


def begin() -> Case:
    """Fills a clean cache, and notes the results of the programs."""
    names = list(PROGRAMS)
    found = forked(lambda: [_given(name, "clean", None) for name in names], PATIENCE * len(names))
    wanted: dict[str, str] = dict(zip(names, found.value, strict=True))
    entries = {path.name: path.read_bytes() for path in sorted(Path("clean").glob("*.o"))}

    def case(random: Random) -> Verdict:
        stage, name = STAGES[int(random.integers(len(STAGES)))], str(random.choice(names))
        _remove(FOLDER)
        scene = stage(random, entries)
        count = int(random.integers(1, 4)) if random.random() < 0.3 else 1
        return judged(scene, stage.__name__[1:], name, wanted[name], count)

    return case


def _remove(path: Path) -> None:
    subprocess.run(["rm", "-rf", "--", path], check=True)


def _given(name: str, cache: str, before: Callable[[], object] | None) -> str:
    warnings.simplefilter("ignore")  # the warning that the folder cannot be used
    if before is not None:
        before()
    return result(name, SIZE, cache=cache)


def judged(scene: Scene, stage: str, name: str, wanted: str, count: int) -> Verdict:
    """Runs several processes at once, then another one, and compares their results."""
    told = f"{stage}, program {name}, {count} at once"
    for processes in (count, 1):
        for ended in _together(scene, name, processes):
            if verdict := _verdict(ended, stage, told, wanted):
                return verdict
    problem = scene.check()
    return Verdict(OTHER, f"{stage}: {problem}", told) if problem else Verdict()


def _together(scene: Scene, name: str, count: int) -> list[Ended]:
    forks = [Fork(lambda: _given(name, scene.cache, scene.before)) for _ in range(count)]
    over = threading.Event()

    def disturb() -> None:
        while scene.during is not None and not over.wait(0.001):
            scene.during()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE
        return [fork.ended(deadline - time.monotonic()) for fork in forks]
    finally:
        over.set()
        thread.join()


def _verdict(ended: Ended, stage: str, told: str, wanted: str) -> Verdict | None:
    if ended.hung:
        return Verdict(HANG, stage, told)
    if ended.signal:
        return Verdict("death", f"{stage}: signal {ended.signal}", told)
    if ended.value is None:
        last = ended.text.strip().splitlines()[-1:]
        return Verdict(WRONG, f"{stage}: fails", f"{told}: {last}")
    if ended.value != wanted:
        return Verdict(WRONG, f"{stage}: another result", told)
    return None


def _filled(entries: Entries) -> None:
    FOLDER.mkdir(mode=0o700)
    for name, data in entries.items():
        (FOLDER / name).write_bytes(data)


def _damaged_entries(random: Random, entries: Entries) -> Scene:
    share = random.random()
    _filled(
        {
            name: mutated(random, data, HEADER)[0] if random.random() < share else data
            for name, data in entries.items()
        }
    )
    return Scene()


def _swapped_entries(random: Random, entries: Entries) -> Scene:
    order = random.permutation(len(entries))
    _filled(dict(zip(entries, [list(entries.values())[i] for i in order], strict=True)))
    return Scene()


def _odd_entries(random: Random, entries: Entries) -> Scene:
    """Folders, links, pipes and endless files under the names of entries."""
    _filled(entries)
    for name in entries:
        path, kind = FOLDER / name, int(random.integers(7))
        if kind < 6:
            path.unlink()
        ODD[kind](path)
    return Scene()


ODD: tuple[Callable[[Path], object], ...] = (
    lambda path: path.mkdir(),
    lambda path: path.symlink_to("nowhere"),
    lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: os.mkfifo(path),
    lambda path: path.touch() or os.truncate(path, 1 << 40),
    lambda path: path.chmod(0),
)


def _file_in_its_place(random: Random, entries: Entries) -> Scene:
    FOLDER.write_bytes(b"a file")
    below = random.random() < 0.5

    def check() -> str:
        return "" if FOLDER.read_bytes() == b"a file" else "the user's file is gone"

    return Scene(str(FOLDER / "below") if below else str(FOLDER), check=check)


def _not_ones_own(random: Random, entries: Entries) -> Scene:
    """A folder of another user, whose entries contain wrong code."""
    keys = list(entries)
    order = random.permutation(len(keys))
    _filled(
        {
            name: entries[name][:8] + bytes.fromhex(name[:64]) + entries[keys[i]][40:]
            for name, i in zip(keys, order, strict=True)
        }
    )
    if not identity.may_change():
        return Scene()
    os.chown(FOLDER, ANOTHER, ANOTHER)
    FOLDER.chmod(0o755)
    return Scene(before=identity.powerless if random.random() < 0.5 else None)


def _without_rights(random: Random, entries: Entries) -> Scene:
    _filled(entries)
    FOLDER.chmod(int(random.choice([0, 0o100, 0o200, 0o400, 0o500, 0o777, 0o1777])))
    return Scene(before=identity.powerless)


def _strange_path(random: Random, entries: Entries) -> Scene:
    paths = (
        "x" * 300,
        "a/" * 60 + "b",
        "é ü",
        "/proc/nothing",
        "/dev/null",
        ".",
        "/dev/full/x",
        " ",
    )
    return Scene(paths[int(random.integers(len(paths)))])


def _linked(random: Random, entries: Entries) -> Scene:
    _remove(Path("elsewhere"))
    _filled(entries)
    FOLDER.rename("elsewhere")
    FOLDER.symlink_to(str(random.choice(["elsewhere", "nowhere", str(FOLDER)])))
    return Scene()


def _no_room(random: Random, entries: Entries) -> Scene:
    """Limits the size of files."""
    size = int(10 ** random.uniform(0, 4))
    return Scene(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))


def _users_files(random: Random, entries: Entries) -> Scene:
    """A full cache folder that also contains the user's files."""
    _filled(entries | USERS)
    (FOLDER / "sub").mkdir()
    (FOLDER / "sub" / "inner.txt").write_bytes(b"keep")
    for name in USERS:
        os.utime(FOLDER / name, (1, 1))  # the oldest of all

    def check() -> str:
        Cache(str(FOLDER), limit=int(random.integers(1, 3000))).trim()
        kept = all(
            (FOLDER / n).is_file() and (FOLDER / n).read_bytes() == d for n, d in USERS.items()
        )
        return (
            "" if kept and (FOLDER / "sub" / "inner.txt").is_file() else "the user's files are gone"
        )

    return Scene(check=check)


def _changing(random: Random, entries: Entries) -> Scene:
    """Another process writes to the entries and removes them while they are read."""
    _filled(entries)

    def during() -> None:
        for name in random.choice(list(entries), 3):
            (FOLDER / name).write_bytes(mutated(random, entries[name], HEADER)[0])
        (FOLDER / str(random.choice(list(entries)))).unlink(missing_ok=True)

    return Scene(during=during)


def _vanishing(random: Random, entries: Entries) -> Scene:
    """The folder is removed while it is used."""
    if random.random() < 0.5:
        _filled(entries)
    return Scene(during=lambda: _remove(FOLDER))


STAGES: tuple[Stage, ...] = (
    *(_damaged_entries,) * 8, _swapped_entries, _odd_entries, _odd_entries, _file_in_its_place,
    _not_ones_own, _without_rights, _without_rights, _strange_path, _linked, _no_room, _users_files,
    _changing, _vanishing,
)  # fmt: skip
