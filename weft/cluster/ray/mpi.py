"""`launch`: the ranks of an MPI job, started through Ray actors instead of ssh."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weft.cluster.ray.library import in_bundle, library, placed, removed
from weft.errors import ArgumentError, DistributedError
from weft.host.cores import MARK
from weft.transport import supervisor

__all__ = ["launch"]

_COMMAND: Final = "HYDRA_LAUNCH: "
_END: Final = "HYDRA_LAUNCH_END"
_NEWS: Final = supervisor.NEWS.decode()
RESOURCE_SECONDS: Final = 120.0


class HostActor:
    """One node of an MPI job: starts the launcher, or a proxy of it, which starts the ranks."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def address(self) -> str:
        """Of the node."""
        return str(library().util.get_node_ip_address())

    def begin(self, hosts: str, ranks: int, command: Sequence[str]) -> list[list[str]]:
        """Starts MPI's launcher here; the commands of its proxies, in the order of the hosts."""
        folder = tempfile.mkdtemp(prefix="weft-job-")
        supervised = [sys.executable, "-I", "-S", str(supervisor.__file__), folder]
        self._process = subprocess.Popen(
            [
                _launcher(), "-launcher", "manual", "-localhost", self.address(), "-hosts", hosts,
                "-n", str(ranks), *supervised, sys.executable, *command,
            ],
            env={**os.environ, "PYTHONUNBUFFERED": "1", MARK: folder}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=_end_with_actor,
        )  # fmt: skip
        found: list[list[str]] = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_COMMAND):
                found.append(shlex.split(line.removeprefix(_COMMAND)))
            if line.startswith(_END):
                return found
        raise DistributedError(f"launch: mpiexec has ended with code {self._process.wait()}")

    def proxy(self, command: Sequence[str]) -> int:
        """Starts ranks here; the proxy's code."""
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_end_with_actor
        ) as process:
            return process.wait()

    def end(self) -> int:
        """Passes on what the ranks print, until all have ended; the job's code."""
        assert self._process is not None and self._process.stdout is not None
        codes: list[int] = []
        for line in self._process.stdout:
            if not line.startswith(_NEWS):
                print(line, end="", flush=True)
                continue
            code, _, text = line.removeprefix(_NEWS).rstrip().partition(" ")
            if int(code) != supervisor.BEGUN:  # a rank has ended badly
                codes.append(int(code))
                print(text or f"a rank has ended with code {code}", flush=True)
        return codes[0] if codes else self._process.wait()


def launch(
    command: Sequence[str], ranks: int, *, nodes: int = 1, cpus_per_rank: float = 1.0,
    max_restarts: int = 0, environment: Mapping[str, str] | None = None,
    timeout: float = RESOURCE_SECONDS,
) -> int:  # fmt: skip
    """Runs an MPI job on Ray's nodes; its exit code. Lines of output come through Ray's logs.

    As with `weft launch --restarts`, one rank that fails ends all, and all start again.

    Args:
        command: Python's arguments: a script and its own, or `-m` and a module. The script must be
            on each node.
        ranks: how many processes.
        nodes: on how many nodes they are divided evenly.
        cpus_per_rank: of Ray's resources.
        max_restarts: how often all ranks start again after one has failed, or a node was lost.
        environment: variables of the ranks.
        timeout: seconds until the resources must be there.

    Raises:
        ArgumentError: Ray is not installed, or its cluster lacks the resources.
    """
    if not 1 <= nodes <= ranks:
        raise ArgumentError.here(f"launch: expected 1 to {ranks} nodes, got {nodes}")
    shares = [ranks // nodes + (number < ranks % nodes) for number in range(nodes)]
    bundles = [{"CPU": share * cpus_per_rank} for share in shares]
    group = placed(bundles, "STRICT_SPREAD" if nodes > 1 else "PACK", timeout)
    try:
        for left in range(max_restarts, -1, -1):
            code = _run(command, shares, group, dict(environment or {}))
            if code == 0 or not left:
                return code
            print(f"weft.cluster.ray: all ranks start again, {left} more times at most", flush=True)
        raise AssertionError
    finally:
        removed(group)


def _run(command: Sequence[str], shares: Sequence[int], group: Any, variables: Any) -> int:
    ray = library()
    actors = [
        ray.remote(HostActor)
        .options(num_cpus=0, max_concurrency=4, scheduling_strategy=in_bundle(group, number),
                 runtime_env={"env_vars": variables})
        .remote()
        for number in range(len(shares))
    ]  # fmt: skip
    lost = library("ray.exceptions").RayError
    try:
        places = ray.get([actor.address.remote() for actor in actors])
        hosts = ",".join([f"{p}:{share}" for p, share in zip(places, shares, strict=True)])
        proxies = ray.get(actors[0].begin.remote(hosts, sum(shares), tuple(command)))
        running = [a.proxy.remote(proxy) for a, proxy in zip(actors, proxies, strict=True)]
        code = int(ray.get(actors[0].end.remote()))
        ray.wait(running, num_returns=len(running), timeout=5.0)
        return code
    except lost as error:
        print(f"weft.cluster.ray: a node of the job was lost: {error}", flush=True)
        return 1
    finally:
        for actor in actors:
            ray.kill(actor)


def _launcher() -> str:
    wheel = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(wheel) if wheel.exists() else shutil.which("mpiexec")
    if found is None:
        raise DistributedError('launch: there is no mpiexec; install: pip install "weft[mpi]"')
    return found


def _end_with_actor() -> None:
    """The process is killed with the actor that has started it; supervisors then kill the ranks."""
    supervisor.die_with_parent(signal.SIGKILL)
