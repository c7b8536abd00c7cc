"""Files are written whole or not at all; links, permissions and owners of a path are kept."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from weft.errors import FileError
from weft.formats import atomic_file as module
from weft.formats.atomic_file import open_file, write_file

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("before", [0o600, 0o640, 0o644, 0o666])
def test_permissions_and_owner_stay(tmp_path, before):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(before)
    owner = (NOBODY, NOBODY) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)
    write_file(path, [b"new"])
    status = path.stat()
    assert path.read_bytes() == b"new" and mode(path) == before
    assert (status.st_uid, status.st_gid) == owner


def test_a_new_file_has_the_permissions_that_others_get(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "a", [b"new"])
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == 0o640


def test_a_group_that_cannot_be_kept_gets_no_permission(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o664)
    group = path.stat().st_gid + 1
    kept = os.stat

    def of_another_group(path, **given):
        values = list(kept(path, **given))
        values[stat.ST_GID] = group
        return os.stat_result(values)

    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(module.os, "stat", of_another_group)
    monkeypatch.setattr(module.os, "fchown", refused)
    write_file(path, [b"new"])
    monkeypatch.undo()
    assert path.read_bytes() == b"new" and mode(path) == 0o604


def test_links_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    target, link, chain = tmp_path / "far" / "a", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("far/a")
    chain.symlink_to(link)
    for content in (b"first", b"second"):  # where there is nothing yet, and where there is
        write_file(chain, [content])
        assert link.is_symlink() and chain.is_symlink() and not target.is_symlink()
        assert target.read_bytes() == content
    assert names(tmp_path) == ["chain", "far", "link"] and names(tmp_path / "far") == ["a"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        write_file(loop, [b"x"])
    assert loop.is_symlink()


def test_what_is_no_file_raises(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    cases = {
        tmp_path / "pipe": "a pipe", tmp_path / "link": "a pipe", tmp_path / "folder": "a folder",
        Path("/dev/full"): "a device", Path("/dev/null"): "a device",
    }  # fmt: skip
    for path, kind in cases.items():
        before = path.stat()
        with pytest.raises(FileError, match=f"{path} is {kind}: expected a file") as raised:
            write_file(path, [b"x"])
        assert isinstance(raised.value, OSError)
        assert path.stat().st_mode == before.st_mode and path.stat().st_ino == before.st_ino
        if kind == "a pipe":
            with (
                pytest.raises(FileError, match=f"load: {path} is a pipe: expected a file"),
                open_file(path),
            ):
                pass
    assert names(tmp_path) == ["folder", "link", "pipe"]


def as_nobody(deed: str, *arguments: object) -> str:
    """What a user without rights gets who does a deed: a line of Python, `path` its argument."""
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from weft.formats.atomic_file import write_file\n"
        f"if os.geteuid() == 0:\n    os.setgid({NOBODY})\n    os.setuid({NOBODY})\n"
        f"path = Path(sys.argv[1])\ntry:\n    {deed}\n"
        "except OSError as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def everyones(tmp_path) -> Path:
    """A folder that a user without rights reaches and may write to."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(0o755)
    folder = tmp_path / "everyones"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def test_a_file_or_folder_that_may_not_be_written_to_stays(everyones):
    path = everyones / "a"
    path.write_bytes(b"old")
    path.chmod(0o444)
    said = as_nobody("write_file(path, [b'new'])", path)
    assert said.startswith("PermissionError") and str(path) in said
    assert path.read_bytes() == b"old"
    path.chmod(0o666)
    everyones.chmod(0o555)
    said = as_nobody("write_file(path, [b'new'])", path)
    assert said.startswith("PermissionError")
    assert path.read_bytes() == b"old" and names(everyones) == ["a"]


def test_no_room_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match=f"'{path}'") as raised:
            write_file(path, [bytes(3000), bytes(3000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert raised.value.errno == errno.EFBIG
    assert path.read_bytes() == b"old" and names(tmp_path) == ["a"]


KILLED = """
import sys, time
from pathlib import Path
from weft.formats.atomic_file import write_file
path = Path(sys.argv[1])

def parts():
    for number in range(1000):
        yield bytes([number % 256]) * 1000
        print(number, flush=True)
        time.sleep(float(sys.argv[2]))

write_file(path, parts())
"""


def slow_writer(path: Path, seconds: float = 0.01) -> subprocess.Popen[str]:
    """A process that is in the middle of writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), str(seconds)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline()
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_what_killed_writers_left_goes_with_the_next_file(tmp_path):
    path = tmp_path / "a"
    write_file(path, [b"old"])
    (tmp_path / "mine.tmp").write_bytes(b"not Weft's")
    writers = [slow_writer(path) for _ in range(3)]
    for writer in writers[:2]:
        end(writer)
    alive = writers[2]
    try:
        assert path.read_bytes() == b"old" and len(names(tmp_path)) == 5
        write_file(tmp_path / "b", [b"new"])  # whatever it is called
        left = [name for name in names(tmp_path) if name.startswith("weft-")]
        assert len(left) == 1  # of the one who still writes
    finally:
        end(alive)
    write_file(path, [b"new"])
    assert names(tmp_path) == ["a", "b", "mine.tmp"]


def test_what_another_machine_may_be_writing_is_left_alone_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_machine", lambda: "0123abcd")
    temporary, descriptor = module._create(tmp_path, 0o600)
    os.close(descriptor)
    monkeypatch.undo()
    write_file(tmp_path / "a", [b"x"])
    assert len(names(tmp_path)) == 2
    long_ago = time.time() - 2 * module.FORSAKEN_SECONDS
    os.utime(temporary, (long_ago, long_ago))
    write_file(tmp_path / "a", [b"x"])
    assert names(tmp_path) == ["a"]


def test_writers_and_those_who_clean_up_do_not_meet(tmp_path):
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for turn in range(40):
                write_file(tmp_path / f"{number % 2}", [b"%d" % turn] * 100)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and names(tmp_path) == ["0", "1"]


def test_a_folder_that_may_not_be_listed_is_written_to(everyones):
    everyones.chmod(0o333)
    assert as_nobody("write_file(path, [b'new'])", everyones / "a") == ""
    everyones.chmod(0o777)
    assert names(everyones) == ["a"]


def test_an_error_among_the_parts_leaves_the_old_file(tmp_path):
    write_file(tmp_path / "a", [b"old"])

    def parts():
        yield b"new"
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        write_file(tmp_path / "a", parts())
    assert (tmp_path / "a").read_bytes() == b"old" and names(tmp_path) == ["a"]
