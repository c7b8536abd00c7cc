"""A job on two hosts that only ssh and a link join: network namespaces stand for them; takes root.

Ranks are killed and stopped, the link goes down, the launcher and its helper die: the launcher
comes back, and no rank stays. Without root, `sshd` or namespaces that is said, and nothing tried.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.link import ADDRESSES, absence, limited_link
from tools.attack.ranks import ENDS_WITHIN, WATCHDOG, Job, parent_of
from tools.attack.verdict import HANG, OTHER, WRONG, Case, Verdict

MBITS = 1000
WAYS = ("kill", "stop", "link", "launcher", "helper")
LEFT_WITHIN = WATCHDOG + 10.0  # of a rank that the launcher no longer reaches


def begin() -> Case:
    """Says why nothing is tried, if so."""
    why = absence() or ("no sshd" if shutil.which("sshd") is None else "")
    if why:
        print(f"hosts: skipped: {why}", file=sys.stderr)
        return lambda _: Verdict()
    return case


def case(random: np.random.Generator) -> Verdict:
    """A job of a rank on each host, and what happens to the second."""
    way, late = str(random.choice(WAYS)), float(random.uniform(0, 1.0))
    told = f"{way}, {late:.2f} s after training began"
    with limited_link(MBITS) as link, _ssh(link.prefix) as shell:
        env = {**link.env, "HYDRA_LAUNCHER_EXEC": str(shell)}
        job = Job(2, link.prefix, link.options, env)
        try:
            if not job.wait(early=False):
                return Verdict(OTHER, "the job did not start", f"{told}: {job.said()}")
            time.sleep(late)
            _do(way, job, [*link.prefix, "ip", "link", "set", link.env["HYDRA_IFACE"], "down"])
            if not job.ends():
                return Verdict(HANG, "the launcher does not come back", f"{told}: {job.said()}")
            return _judged(way, told, job)
        finally:
            job.clear()


def _do(way: str, job: Job, cut: list[str]) -> None:
    rank = job.pids[1]
    if way == "link":
        subprocess.run(cut, check=True)
        return
    target, number = {
        "kill": (rank, signal.SIGKILL), "stop": (rank, signal.SIGSTOP),
        "launcher": (job.process.pid, signal.SIGKILL),
        "helper": (parent_of(parent_of(rank)), signal.SIGKILL),
    }[way]  # fmt: skip
    os.kill(target, number)


def _judged(way: str, told: str, job: Job) -> Verdict:
    until = time.monotonic() + (LEFT_WITHIN if way in ("link", "launcher") else 1.0)
    while any(map(job.alive, job.pids.values())) and time.monotonic() < until:
        time.sleep(0.1)
    text = job.said()
    left = [pid for pid in job.pids.values() if job.alive(pid)]
    if left:
        return Verdict(OTHER, f"ranks are left after {way}", f"{told}: {left}: {text}")
    if job.process.returncode == 0:
        return Verdict(WRONG, "the job ends as if all were well", f"{told}: {text}")
    if way in ("kill", "stop", "link") and "rank 1" not in text:
        return Verdict(WRONG, f"nobody names the rank after {way}", f"{told}: {text}")
    if leftover := job.memory_left():
        return Verdict(OTHER, f"memory is left after {way}", f"{told}: {leftover}")
    return Verdict()


@contextlib.contextmanager
def _ssh(prefix: tuple[str, ...]) -> Iterator[Path]:
    """A server on each host, and a program that logs in there."""
    with tempfile.TemporaryDirectory(prefix="weft-ssh-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        for key in ("host", "user"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
        keys = folder / "keys"
        keys.write_bytes((folder / "user.pub").read_bytes())
        Path("/run/sshd").mkdir(exist_ok=True)
        for space, address in zip((prefix[3], f"{prefix[3][:-1]}b"), ADDRESSES, strict=True):
            server = subprocess.Popen(
                ["ip", "netns", "exec", space, str(shutil.which("sshd")), "-D", "-f", "/dev/null",
                 "-h", str(folder / "host"), *_options(
                     ListenAddress=address, AuthorizedKeysFile=keys, PidFile="none",
                     StrictModes="no", UsePAM="no", MaxStartups=100)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            stack.callback(server.wait)
            stack.callback(server.kill)
        options = _options(
            StrictHostKeyChecking="no", UserKnownHostsFile="/dev/null", LogLevel="ERROR"
        )
        shell = folder / "shell"
        shell.write_text(f'#!/bin/sh\nexec ssh -i {folder / "user"} {" ".join(options)} "$@"\n')
        shell.chmod(0o755)
        _until_reached([*prefix, str(shell), ADDRESSES[1], "true"])
        yield shell


def _options(**values: Any) -> list[str]:
    return [part for name, value in values.items() for part in ("-o", f"{name}={value}")]


def _until_reached(command: list[str]) -> None:
    until = time.monotonic() + ENDS_WITHIN
    while subprocess.run(command, capture_output=True, check=False).returncode:
        if time.monotonic() > until:
            raise RuntimeError("sshd does not answer")
        time.sleep(0.1)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
