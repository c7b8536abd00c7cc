"""Programs under Slurm's own daemons: two nodes by name, and a cluster of three tasks on this one.

Needs `slurm-wlm` and `munge`, and root; `make test-slurm` runs it.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import pytest

from weft.cluster.resolver.hostlist import expand_hostlist

CONFIG = """
ClusterName=weft
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_munge(folder):
    (folder / "munge").mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    names = ("key-file", "socket", "pid-file", "log-file", "seed-file")
    files = [f"--{name}={folder}/munge/{name.partition('-')[0]}" for name in names]
    return subprocess.Popen(["munged", "--foreground", "--force", *files])


@contextlib.contextmanager
def daemons(folder, names):
    """Slurm with nodes of these names, all on this machine; runs commands of it."""
    host = socket.gethostname()
    os.chmod(folder, 0o755)
    (folder / "state").mkdir()
    port, *ports = free_ports(1 + len(names))
    nodes = [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={os.cpu_count()}"
        for name, port in zip(names, ports, strict=True)
    ]
    text = CONFIG.format(folder=folder, host=host, port=port, nodes="\n".join(nodes))
    (folder / "slurm.conf").write_text(text)
    env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PYTHONPATH": os.getcwd()}

    def run(*command, check=True):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.splitlines()

    processes = [start_munge(folder)]
    try:
        while not (folder / "munge" / "socket").exists():
            time.sleep(0.05)
        for command in (["slurmctld"], *[["slurmd", "-N", name] for name in names]):
            processes.append(subprocess.Popen([command[0], "-D", *command[1:]], env=env))
        end = time.monotonic() + 30
        while run("sinfo", "-h", "-t", "idle", "-o", "%D", check=False) != [str(len(names))]:
            assert time.monotonic() < end, (folder / "ctld.log").read_text()
            time.sleep(0.2)
        yield run
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(20)


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory):
    with daemons(tmp_path_factory.mktemp("two"), ["t1", "t2"]) as run:
        yield run


@pytest.fixture(scope="module")
def this_node(tmp_path_factory):
    """Its name is that of this machine, where its tasks find each other."""
    with daemons(tmp_path_factory.mktemp("this"), [socket.gethostname()]) as run:
        yield run


TELL = """
import json
from weft.cluster.resolver.resolve import resolve
found = resolve({"ps": 1, "worker": 3}, port_base=7000)
print(json.dumps([found.cluster.as_dict(), found.job_name, found.task_index, found.source]))
"""


def test_tasks_on_two_nodes(two_nodes):
    told = two_nodes("srun", "-N", "2", "-n", "4", "-O", sys.executable, "-c", TELL)
    found = [json.loads(line) for line in told]
    spec = {"ps": ["t1:7000"], "worker": ["t1:7001", "t2:7000", "t2:7001"]}
    assert all(one[0] == spec and one[3] == "Slurm" for one in found)
    assert sorted((one[1], one[2]) for one in found) == [
        ("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2)
    ]  # fmt: skip


WORK = """
import sys, time
import numpy as np
from weft.cluster import HashTable, Server, Shards, resolve
found = resolve({"ps": 1, "worker": 2}, port_base=int(sys.argv[1]))
server = Server(found.cluster, found.job_name, found.task_index, listen=sys.argv[2] + ":"
                + found.cluster.task_address(found.job_name, found.task_index).rpartition(":")[2])
server.start()
ps = found.cluster.task_address("ps", 0)
if found.job_name == "ps":
    shards = Shards(40, size=4, chief=server)
    while shards.report()["done"] < 10:
        time.sleep(0.05)
    rows = HashTable("t", 1, servers=[server]).lookup(np.arange(40), insert=False)
    print("rows", float(rows.min()), float(rows.max()))
    time.sleep(1.0)
else:
    from weft.cluster.rpc import RpcOptions
    options = RpcOptions(connect_timeout=30.0)
    table = HashTable("t", 1, servers=[ps], options=options)
    for number in Shards(40, size=4, chief=ps, options=options).elements():
        table.lookup([number]); table.update([number], -100 * np.ones((1, 1)), lr=1.0)
server.stop()
"""


def test_a_cluster_of_servers(this_node):
    (base,) = free_ports(1)
    arguments = ("-O", sys.executable, "-c", WORK, str(base), "0.0.0.0")
    told = this_node("srun", "-n", "3", *arguments)
    low, high = next(map(float, line.split()[1:]) for line in told if line.startswith("rows"))
    assert 99 < low <= high < 101


def test_lists_of_hosts_are_as_scontrol_expands_them(two_nodes):
    for text in ("n1", "n[1-3]", "n[08-10,12]", "a,b[1,3],c-d", "r[1-2]n[1-2]"):
        assert expand_hostlist(text) == two_nodes("scontrol", "show", "hostnames", text)
