"""What watches over a rank: how it ends is told, and nothing of it stays."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT, eventually

from weft.transport import supervisor

TELL = """
import os, signal, subprocess, sys, time
pipe, inode, pid = map(int, os.environ["TOLD_TO_SUPERVISOR"].split(":"))
assert pid == os.getpid() and os.fstat(pipe).st_ino == inode
os.set_inheritable(pipe, False)
tell = lambda mark: os.write(pipe, mark)
print("begun", os.getpid(), flush=True)
"""
FOREVER = "while True: time.sleep(0.1)"
WAYS = {
    "well": ("tell(b'+'); tell(b'-')", 0, None),
    "alone": ("os._exit(0)", 0, None),
    "status": ("sys.exit(3)", 3, ""),
    "out": ("tell(b'+'); os._exit(0)", 1, "rank 7 ended with status 0 in the middle of the job"),
    "exec": (
        "tell(b'+'); os.execv(sys.executable, [sys.executable, '-c', 'pass'])", 1,
        "rank 7 ended with status 0 in the middle of the job",
    ),
    "told": ("tell(b'+'); tell(b'!'); os._exit(1)", 1, ""),
    "killed": (
        "os.kill(os.getpid(), signal.SIGKILL)", 137,
        r"rank 7 was killed by SIGKILL \(host .*, pid \d+\): was it out of memory",
    ),
    "asked": (
        "os.kill(os.getpid(), signal.SIGTERM)", 143, "rank 7 was killed by SIGTERM .* somebody",
    ),
    "crashed": ("os.kill(os.getpid(), signal.SIGSEGV)", 139, "rank 7 was killed by SIGSEGV"),
}  # fmt: skip


def watched(folder, code):
    return subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, str(folder), sys.executable, "-S", "-c",
         TELL + code],
        env={**os.environ, "PMI_RANK": "7"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def rank_of(process):
    return int(process.stdout.readline().split()[1])


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def rests(folder):
    """Whether all that watch over ranks for a folder sleep, and have nothing left to do."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "S" and str(folder) in (process / "cmdline").read_text():
                return False
        except OSError:
            continue
    return True


@pytest.mark.parametrize("way", WAYS)
def test_the_end_of_a_rank_is_told(way, tmp_path):
    code, wanted, text = WAYS[way]
    process = watched(tmp_path, code)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == wanted, err
    begun, *news = err.rstrip("\n").split("\n")
    assert begun == "\x1d-1 "
    if text is None:
        assert news == []
    else:
        assert re.match(f"\x1d{wanted} {text and 'weft launch: '}{text}", news[-1] + " "), news


@pytest.mark.parametrize("way", ["supervisor", "stopped", "term", "parent"])
def test_no_rank_outlives_who_watches_over_it(way, tmp_path):
    """Not even one that is stopped, nor what it has started; MPI's memory goes, too."""
    if not Path(supervisor.MEMORY).is_dir():
        pytest.skip("this system has no folder of shared memory")
    name = f"mpich_shm_test{os.getpid()}_0"
    other = Path(supervisor.MEMORY, f"mpich_shm_other{os.getpid()}_0")
    other.touch()
    code = (
        f"held = open('{supervisor.MEMORY}/{name}', 'w')\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        f"print('has', child.pid, flush=True)\n{FOREVER}"
    )
    if way == "parent":  # which MPI's launcher is
        start = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"
        given = watched(tmp_path, code)
        arguments = given.args
        given.kill()
        given.communicate()
        process = subprocess.Popen(
            [sys.executable, "-c", start, *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "PMI_RANK": "7"},
        )  # fmt: skip
    else:
        process = watched(tmp_path, code)
    try:
        pids = [rank_of(process), rank_of(process)]
        eventually(lambda: rests(tmp_path) and rests(tmp_path))  # the names are seen, told
        if way == "stopped":
            os.kill(pids[0], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM if way == "term" else signal.SIGKILL)
        eventually(lambda: all(map(is_gone, pids)))
        eventually(lambda: not Path(supervisor.MEMORY, name).exists())
        assert other.exists()
        if way == "parent":
            assert "rank 7" in (tmp_path / "failed-7").read_text()
    finally:
        other.unlink()
        process.kill()
        process.communicate()
