"""Clusters and MPI jobs on Ray; `make test-ray` runs it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import ray

import weft.cluster.ray as weft_ray
from weft.cluster import HashTable, Shards
from weft.errors import AbortedError, ArgumentError, DeadlineError, UnavailableError

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def one_node():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    path = f"{os.getcwd()}:{Path(__file__).parent}"
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": path}})  # fmt: skip
    yield
    ray.shutdown()


def pid_of(cluster, job, index):
    return ray.get(cluster.actors[job, index].ready.remote(), timeout=60)


def address(cluster, job, index=0):
    return cluster.spec.task_address(job, index)


def until_it_answers(ask):
    """Asks again while a server does not answer; Ray starts a process in some seconds."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(UnavailableError):
            ask()
        time.sleep(0.1)


def add_ones(task):
    """Adds 1 to a row for each element that it is given."""
    servers = [task.cluster.task_address("ps", i) for i in range(task.cluster.num_tasks("ps"))]
    chief, seen = task.cluster.task_address("chief", 0), []
    with HashTable("ones", 1, servers=servers) as table:
        for element in Shards(60, size=3, chief=chief, timeout=30.0).elements():
            table.lookup([element])
            table.update([element], [[-1000.0]], lr=1.0)
            seen.append(element)
            time.sleep(0.05)
    return task.restarted, len(seen)


def test_a_killed_worker_comes_back_and_no_shard_is_lost(one_node):
    with weft_ray.start({"chief": 1, "ps": 2, "worker": 2}, strategy="PACK") as cluster:
        cluster.run({"worker": add_ones})
        shards = Shards(60, size=3, chief=address(cluster, "chief"), timeout=30.0)
        end = time.monotonic() + 60
        while shards.report()["done"] < 3:
            assert time.monotonic() < end
            time.sleep(0.05)
        os.kill(pid_of(cluster, "worker", 0), signal.SIGKILL)
        (first, second) = cluster.wait(120)["worker"]
        assert first[0] and not second[0]
        assert shards.report()["done"] == 20
        table = HashTable("ones", 1, servers=[address(cluster, "ps", i) for i in range(2)])
        times = np.round(table.lookup(np.arange(60), insert=False) / 1000).astype(int)
        # elements of the shard that was begun twice may have been added twice, no other
        assert times.min() == 1 and (times > 1).sum() <= 3 * shards.report()["again"]


def test_a_killed_server_comes_back_at_its_address(one_node, tmp_path):
    with weft_ray.start({"ps": 2}, strategy="PACK") as cluster:
        table = HashTable("t", 2, servers=[address(cluster, "ps", i) for i in range(2)])
        rows = table.lookup(np.arange(30))
        table.save(tmp_path / "rows")
        before = pid_of(cluster, "ps", 1)
        cluster.kill("ps", 1)
        with pytest.raises(AbortedError, match="has started anew and has lost its rows"):
            until_it_answers(lambda: table.lookup(np.arange(30)))
        assert pid_of(cluster, "ps", 1) != before
        table.restore(tmp_path / "rows")
        np.testing.assert_array_equal(table.lookup(np.arange(30)), rows)


def fail(task):
    raise ValueError(f"no {task.job_name} here")


def wait_long(task):
    time.sleep(60)


def test_errors(one_node):
    with weft_ray.start({"worker": 1}, servers=[]) as cluster:
        cluster.run({"worker": fail})
        with pytest.raises(ValueError, match="no worker here"):
            cluster.wait(60)
        with pytest.raises(ArgumentError, match="expected programs of worker, got one of 'ps'"):
            cluster.run({"ps": fail})
        cluster.run({"worker": wait_long})
        with pytest.raises(DeadlineError, match=r"1 of 1 programs still run after 0\.5 s"):
            cluster.wait(0.5)
    with pytest.raises(ArgumentError, match=r"expected a cluster with \{'CPU': 99\.0\} in 1 bund"):
        weft_ray.start({"ps": 1}, resources={"ps": {"CPU": 99.0}}, timeout=0.5)


RANK = """
import sys
from weft import distributed
distributed.init_process_group()
import weft as wf
x = wf.ones(3) * (distributed.get_rank() + 1)
distributed.all_reduce(x)
open(f"{sys.argv[1]}/{distributed.get_rank()}", "a").write(f"{x.tolist()}")
if len(sys.argv) > 2 and not __import__("os").path.exists(sys.argv[2]):
    open(sys.argv[2], "w").close()
    __import__("os").kill(__import__("os").getpid(), 9) if distributed.get_rank() == 1 else None
    distributed.barrier()
"""


def test_ranks_of_mpi(one_node, tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    assert weft_ray.launch([str(script), str(tmp_path)], 3) == 0
    assert [(tmp_path / str(n)).read_text() for n in range(3)] == ["[6.0, 6.0, 6.0]"] * 3
    again = tmp_path / "again"
    again.mkdir()
    command = [str(script), str(again), str(tmp_path / "killed")]
    assert weft_ray.launch(command, 2, max_restarts=1) == 0
    assert (again / "0").read_text() == "[3.0, 3.0, 3.0]" * 2  # all began anew
    assert weft_ray.launch(["-c", "import sys; sys.exit(5)"], 2) == 5


DRIVER = """
import sys, time
import numpy as np, ray
import weft.cluster.ray as weft_ray
from weft.cluster import HashTable
ray.init(address=sys.argv[1], log_to_driver=False,
         runtime_env={"env_vars": {"PYTHONPATH": sys.argv[2]}})
while len([n for n in ray.nodes() if n["Alive"]]) < 2:
    time.sleep(0.2)
with weft_ray.start({"ps": 2}, strategy="STRICT_SPREAD") as cluster:
    addresses = [cluster.spec.task_address("ps", i) for i in range(2)]
    assert len({a.split(":")[0] for a in addresses}) == 2, addresses
    table = HashTable("t", 2, servers=addresses)
    rows = table.lookup(np.arange(100))
    assert table.update(np.arange(100), rows, lr=1.0) == 100
    assert not table.lookup(np.arange(100)).any()
assert weft_ray.launch([sys.argv[3], sys.argv[4]], 4, nodes=2) == 0
print("done", flush=True)
"""


def ip(*arguments, check=True):
    subprocess.run(["ip", *arguments], check=check, capture_output=True)


@pytest.fixture
def two_hosts():
    """Two network namespaces, joined by a pair of virtual devices."""
    names, addresses = ("weft-ray-a", "weft-ray-b"), ("10.77.0.1", "10.77.0.2")
    for name in names:
        ip("netns", "add", name)
    try:
        ip("link", "add", "weft0", "netns", names[0], "type", "veth", "peer", "weft1", "netns",
           names[1])  # fmt: skip
        for name, device, address in zip(names, ("weft0", "weft1"), addresses, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names, addresses
    finally:
        for name in names:
            found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for process in found.stdout.split():  # Ray's, which sessions of their own outlive
                os.kill(int(process), signal.SIGKILL)
            ip("netns", "del", name, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_two_nodes(two_hosts, tmp_path):
    names, addresses = two_hosts
    more = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONPATH": os.getcwd()}
    env = {**os.environ, **more}
    head = f"{addresses[0]}:6379"
    short = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # sockets have names of 107 bytes at most
    begin = ["--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={short}"]
    roles = [begin, [f"--address={head}"]]
    nodes = []
    (tmp_path / "rank.py").write_text(RANK)
    (tmp_path / "out").mkdir()
    try:
        for name, address, role in zip(names, addresses, roles, strict=True):
            command = [
                "ip", "netns", "exec", name, str(BIN / "ray"), "start", "--block", *role,
                f"--node-ip-address={address}", "--num-cpus=4",
            ]  # fmt: skip
            nodes.append(subprocess.Popen(command, env=env, start_new_session=True,
                                          stdout=subprocess.DEVNULL))  # fmt: skip
            time.sleep(8)
        told = subprocess.run(
            ["ip", "netns", "exec", names[0], sys.executable, "-c", DRIVER, head, os.getcwd(),
             str(tmp_path / "rank.py"), str(tmp_path / "out")],
            env=env, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert told.stdout.endswith("done\n"), told.stdout + told.stderr
        ranks = [(tmp_path / "out" / str(n)).read_text() for n in range(4)]
        assert ranks == ["[10.0, 10.0, 10.0]"] * 4
    finally:
        for node in nodes:
            os.killpg(node.pid, signal.SIGKILL)
            node.wait(30)
        shutil.rmtree(short, ignore_errors=True)
