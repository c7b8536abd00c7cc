"""The disk cache runs no foreign code, touches no foreign files, and never ends a program."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from weft import config
from weft.runtime.compilation.cache import MARK, Cache, digest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
A, B = digest("a"), digest("b")


def entry(folder: Path, key: str = A) -> Path:
    return folder / f"{key}.o"


def filled(folder: Path) -> Path:
    """A folder with an entry that is good but for what a test does to it."""
    Cache(str(folder)).store({A: b"code"})
    assert Cache(str(folder)).load(A) == b"code"
    return folder


@pytest.fixture
def give_away(monkeypatch):
    """Makes another user the owner of something."""

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        else:
            real, other = os.geteuid(), os.stat(path).st_uid + 1
            monkeypatch.setattr(os, "geteuid", lambda: other if real else real)

    return give


def is_refused(folder: Path, why: str) -> None:
    cache = Cache(str(folder))
    with pytest.warns(RuntimeWarning, match=why) as told:
        assert cache.load(A) is None
        assert not cache.holds(A)
        cache.store({B: b"code"})
    assert len(told) == 1 and "kernels are not cached between runs" in str(told[0].message)
    assert not entry(folder, B).exists()


def test_a_new_folder_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        filled(tmp_path / "x" / "y" / "weft")
    finally:
        os.umask(before)
    for folder in (tmp_path / "x", tmp_path / "x" / "y", tmp_path / "x" / "y" / "weft"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_not_used(tmp_path, give_away):
    give_away(filled(tmp_path / "cache"))
    is_refused(tmp_path / "cache", "cache belongs to user")


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, mode):
    filled(tmp_path / "cache").chmod(mode)
    is_refused(tmp_path / "cache", "others may write to .*cache")


def test_a_folder_that_lies_in_anothers_is_not_used(tmp_path, give_away):
    folder = filled(tmp_path / "outer" / "cache")
    (tmp_path / "outer").chmod(0o777)
    is_refused(folder, "others may write to .*outer;")
    (tmp_path / "outer").chmod(0o1777)  # as /tmp: files in it belong to their owner
    assert Cache(str(folder)).load(A) == b"code"
    (tmp_path / "outer").chmod(0o755)
    give_away(tmp_path / "outer")
    is_refused(folder, "outer belongs to user")


def test_links_lead_to_a_folder_that_is_checked_itself(tmp_path):
    folder = filled(tmp_path / "real" / "cache")
    (tmp_path / "link").symlink_to(folder)
    cache = Cache(str(tmp_path / "link"))
    assert cache.load(A) == b"code" and cache.folder == folder
    (tmp_path / "real").chmod(0o777)
    is_refused(tmp_path / "link", "others may write to .*real;")


def test_entries_of_others_are_not_run(tmp_path, give_away):
    path = entry(filled(tmp_path / "cache"))
    path.chmod(0o666)
    assert Cache(str(tmp_path / "cache")).load(A) is None
    path.chmod(0o644)
    assert Cache(str(tmp_path / "cache")).load(A) == b"code"
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert Cache(str(tmp_path / "cache")).load(A) is None
    path.unlink()
    os.mkfifo(path)
    assert Cache(str(tmp_path / "cache")).load(A) is None  # and does not wait
    path.unlink()
    elsewhere.rename(path)
    cache = Cache(str(tmp_path / "cache"))
    assert cache.load(A) == b"code"
    give_away(path)
    assert cache.load(A) is None


def test_a_folder_with_other_content_is_not_used(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    is_refused(tmp_path, "it holds 'thesis.tex', which is not the cache's")
    assert os.listdir(tmp_path) == ["thesis.tex"]
    is_refused(tmp_path / "thesis.tex", "File exists")
    is_refused(Path("/dev/null/cache"), "File exists")
    (tmp_path / "thesis.tex").unlink()
    (tmp_path / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# other\n")
    is_refused(tmp_path, "its CACHEDIR.TAG is another program's")


def test_a_folder_of_entries_alone_becomes_the_caches(tmp_path):
    (filled(tmp_path) / MARK).unlink()  # as earlier versions left it
    assert Cache(str(tmp_path)).load(A) == b"code"
    assert (tmp_path / MARK).exists()


def test_only_its_own_names_are_removed(tmp_path):
    cache = Cache(str(tmp_path), limit=50_000)
    keys = [digest(str(i)) for i in range(8)]
    mine = {"thesis.tex": 1, "a.o": 1, f"{A}.o.bak": 1, "big": 100_000, "x" * 64 + ".o": 1}
    cache.store({keys[0]: b"x"})
    for name, size in mine.items():
        (tmp_path / name).write_bytes(bytes(size))
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / f"{B}.o").mkdir()
    for key in keys:
        cache.store({key: bytes(9_000)})
    cache.trim()
    left = set(os.listdir(tmp_path))
    assert set(mine) <= left and f"{B}.o" in left
    assert sum(f"{key}.o" in left for key in keys) == 4


def test_one_process_an_hour_looks_for_what_is_too_much(tmp_path):
    for name in "abc":
        Cache(str(tmp_path), limit=10).store({digest(name): b"code"})
        assert (tmp_path / f"{digest(name)}.o").exists()
    mark = tmp_path / MARK
    os.utime(mark, (time.time() - 3601,) * 2)
    Cache(str(tmp_path), limit=10).store({A: b"code"})
    assert [path.name for path in tmp_path.iterdir()] == [MARK]
    assert mark.stat().st_mtime > time.time() - 60


def test_what_killed_processes_left_goes(tmp_path):
    cache = Cache(str(tmp_path))
    cache.store({A: b"code"})
    old, new = (tmp_path / f"{A[:16]}{name}.tmp" for name in ("abcdefg1", "abcdefg2"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    cache.trim()
    assert not old.exists() and new.exists()


def test_without_room_what_is_there_is_still_used(tmp_path, monkeypatch):
    filled(tmp_path)
    cache = Cache(str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        cache.store({B: b"code"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told once
        cache.store({B: b"code"})
        assert cache.load(A) == b"code"


def test_without_a_home_nothing_is_kept(monkeypatch, tmp_path):
    def nobody(_):
        raise KeyError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    assert config.KNOBS["cache"].default() == ""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert config.KNOBS["cache"].default() == ""
    monkeypatch.chdir(tmp_path)
    cache = Cache("")
    with pytest.warns(RuntimeWarning, match="there is no home folder; set WEFT_CACHE to a folder"):
        cache.store({A: b"code"})
    assert cache.load(A) is None and not cache.holds(A) and os.listdir(tmp_path) == []
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # is to be ignored
    assert config.KNOBS["cache"].default() == ""


WITHOUT_RIGHTS = f"""
import os, sys, tempfile, warnings  # all that nobody may not read
from weft.runtime.compilation.cache import Cache, digest
key = digest("a")
if os.geteuid() == 0:
    os.setgid({NOBODY})
    os.setuid({NOBODY})
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    cache = Cache(sys.argv[1])
    print(cache.holds(key), cache.load(key), cache.store({{key: b"code"}}), cache.load(key))
print(*[w.message for w in told], sep="\\n")
"""


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o500])
def test_a_folder_without_permissions_costs_one_line(tmp_path, mode):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    folder = tmp_path / "cache"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    folder.chmod(mode)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, str(folder)],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    folder.chmod(0o700)
    lines = done.stdout.splitlines()
    assert (
        lines[0] == "False None None None" and len(lines) == 2 and "Permission denied" in lines[1]
    )


PROGRAM = """
import weft as wf
print((wf.arange(4.0) * 2 + 1).sum().item())
"""


@pytest.mark.parametrize("case", ["file", "home"])
def test_no_folder_ends_a_program(tmp_path, case):
    (tmp_path / "file").write_text("in the way")
    cases = {"file": {"WEFT_CACHE": str(tmp_path / "file")}, "home": {"HOME": "/nonexistent"}}
    environment = {**os.environ, "WEFT_COMPILE": "1"}
    for name in ("XDG_CACHE_HOME", "WEFT_CACHE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT,
        env={**environment, **cases[case]},
    )  # fmt: skip
    assert done.stdout == "16.0\n", done.stderr
    assert done.stderr.count("RuntimeWarning: kernels are not cached between runs") == 1
    assert not Path("/nonexistent").exists()
    assert (tmp_path / "file").read_text() == "in the way"


def test_an_entry_too_large_for_memory_is_ignored(tmp_path):
    cache = Cache(str(tmp_path / "cache"))
    cache.store({"ab" * 32: b"code"})
    (path,) = (tmp_path / "cache").glob("*.o")
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    assert cache.load("ab" * 32) is None
