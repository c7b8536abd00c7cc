"""Clusters from the environments that launchers set."""

import json

import pytest

import weft.tf1 as tf
from weft.cluster.resolver.base import SimpleClusterResolver, UnionClusterResolver
from weft.cluster.resolver.hostlist import expand_hostlist, expand_tasks_per_node
from weft.cluster.resolver.mpi import MPIClusterResolver
from weft.cluster.resolver.resolve import resolve
from weft.cluster.resolver.slurm import SlurmClusterResolver
from weft.cluster.resolver.tf_config import TFConfigClusterResolver
from weft.cluster.spec import ClusterSpec
from weft.errors import ArgumentError

NAMES = ("TF_CONFIG", "SLURM_PROCID", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE",
         "SLURMD_NODENAME", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_RANK",
         "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")  # fmt: skip


@pytest.fixture
def env(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def give(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return give


LISTS = {
    "n1": ["n1"],
    "n[1-3]": ["n1", "n2", "n3"],
    "n[08-10,12]": ["n08", "n09", "n10", "n12"],
    "a,b[1,3],c-d": ["a", "b1", "b3", "c-d"],
    "r[1-2]n[1-2]": ["r1n1", "r1n2", "r2n1", "r2n2"],
    "x[1-2]-ib,y": ["x1-ib", "x2-ib", "y"],
    "n[9-11]": ["n9", "n10", "n11"],
}


@pytest.mark.parametrize("text", LISTS)
def test_lists_of_hosts(text):
    assert expand_hostlist(text) == LISTS[text]


@pytest.mark.parametrize("text", ["", "n[1-2", "n1]", "n[a-b]", "a,,b", "n[]", "n[3-1]", "n[1-]"])
def test_lists_that_are_none(text):
    with pytest.raises(ArgumentError, match="expected a list as Slurm writes it"):
        expand_hostlist(text)


def test_tasks_per_node():
    assert expand_tasks_per_node("3(x2),2,1(x1)") == [3, 3, 2, 1]
    with pytest.raises(ArgumentError, match=r"such as 3\(x2\),1, got '3x2'"):
        expand_tasks_per_node("3x2")


def test_tf_config(env):
    cluster = {"ps": ["p:1"], "worker": {"0": "w:1", "2": "w:2"}}
    env(TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": "2"},
                              "rpc_layer": "grpc"}))  # fmt: skip
    found = resolve()
    assert (found.job_name, found.task_index, found.is_chief) == ("worker", 2, False)
    assert found.source == "TF_CONFIG"
    assert found.cluster == ClusterSpec({"ps": ["p:1"], "worker": {0: "w:1", 2: "w:2"}})
    resolver = TFConfigClusterResolver()
    assert resolver.master() == "grpc://w:2" and resolver.master("ps", 0, "x") == "x://p:1"
    assert TFConfigClusterResolver("ps", 0).master() == "grpc://p:1"
    env(TF_CONFIG='{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}')
    assert resolver.master() == "" and resolve().is_chief
    env(TF_CONFIG='{"cluster": {"12": ["a:1", "b:1"]}, "task": {"type": 12, "index": 0}}')
    assert resolve().job_name == "12"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "TF_CONFIG: expected JSON, got '{'"),
        ("[]", r"expected a JSON object, got '\[\]'"),
        ('{"cluster": {"worker": ["a:1"]}}', "TF_CONFIG tells no task"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}', "no job 'ps'"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}', "no task 1"),
    ],
)
def test_tf_config_that_is_wrong(env, text, message):
    env(TF_CONFIG=text)
    with pytest.raises(ArgumentError, match=message):
        resolve()


def slurm(env, rank, **more):
    env(SLURM_PROCID=str(rank), SLURM_STEP_NODELIST="t[02-04]",
        SLURM_STEP_TASKS_PER_NODE="2(x2),1", **more)  # fmt: skip


def test_slurm(env):
    slurm(env, 3, SLURMD_NODENAME="t03")
    found = resolve({"ps": 1, "worker": 4}, port_base=100)
    assert found.cluster.as_dict() == {
        "ps": ["t02:100"], "worker": ["t02:101", "t03:100", "t03:101", "t04:100"]
    }  # fmt: skip
    assert (found.job_name, found.task_index, found.source) == ("worker", 2, "Slurm")
    resolver = SlurmClusterResolver()
    assert resolver.get_task_info() == ("worker", 3) and resolver.master() == "grpc://t03:8889"
    given = SlurmClusterResolver({"worker": 4}, tasks_per_node={"t02": 1, "t03": 3})
    assert given.cluster_spec().job_tasks("worker")[3] == "t03:8890"


def test_slurm_that_is_wrong(env):
    with pytest.raises(ArgumentError, match="expected SLURM_PROCID in the environment"):
        SlurmClusterResolver()
    slurm(env, 0)
    with pytest.raises(ArgumentError, match=r"expected jobs of 5 tasks in all.*got \{'ps': 1\}"):
        resolve({"ps": 1})
    with pytest.raises(NotImplementedError, match="expected no GPUs"):
        SlurmClusterResolver(gpus_per_node=1)
    slurm(env, 1, SLURMD_NODENAME="t03")
    with pytest.raises(ArgumentError, match="expected rank 1 on t02, got t03; start the program"):
        SlurmClusterResolver()


@pytest.mark.parametrize("names", [("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"), NAMES[-3:]])
def test_mpi(env, names):
    env(**dict(zip(names, ("1", "3", "3"), strict=True)))
    found = resolve({"chief": 1, "worker": 2}, port_base=70)
    assert found.cluster.as_dict() == {
        "chief": ["127.0.0.1:70"], "worker": ["127.0.0.1:71", "127.0.0.1:72"]
    }  # fmt: skip
    assert (found.job_name, found.task_index, found.source) == ("worker", 0, "MPI")
    assert not found.is_chief
    env(**{names[2]: "1"})
    with pytest.raises(ArgumentError, match="ranks on several hosts must join the job before"):
        MPIClusterResolver()


def test_a_process_by_itself(env):
    found = resolve()
    assert not found.cluster and found.is_chief and found.source == ""
    with pytest.raises(ArgumentError, match="start the program by mpiexec"):
        MPIClusterResolver()


def test_unions():
    a = SimpleClusterResolver(ClusterSpec({"worker": ["w:1"], "ps": ["p:1"]}), "m:1", "ps", 0)
    b = SimpleClusterResolver(ClusterSpec({"worker": ["w:2"]}), rpc_layer="grpc")
    c = SimpleClusterResolver(ClusterSpec({"worker": {3: "w:4"}}), num_accelerators={"GPU": 2})
    both = UnionClusterResolver(a, b)
    assert both.cluster_spec().as_dict() == {"ps": ["p:1"], "worker": ["w:1", "w:2"]}
    assert (both.task_type, both.task_id, both.master()) == ("ps", 0, "m:1")
    assert UnionClusterResolver(b, a).master("ps", 0) == "grpc://p:1"
    assert UnionClusterResolver(a, c).cluster_spec().as_dict()["worker"] == {0: "w:1", 3: "w:4"}
    assert UnionClusterResolver(c, a).num_accelerators() == {"GPU": 2}
    assert SimpleClusterResolver(ClusterSpec({}), num_accelerators=8).num_accelerators() == 8
    with pytest.raises(KeyError, match="job 'worker' has tasks"):
        UnionClusterResolver(a, SimpleClusterResolver(ClusterSpec({"worker": {0: "x:1", 2: "y:1"}}))
                             ).cluster_spec()  # fmt: skip
    with pytest.raises(ArgumentError, match="at least one resolver"):
        UnionClusterResolver()
    with pytest.raises(TypeError, match="expected a ClusterSpec"):
        SimpleClusterResolver({"worker": []})


def test_tensorflow_s_names():
    for module in (tf.contrib.cluster_resolver, tf.distribute.cluster_resolver):
        assert module.TFConfigClusterResolver is TFConfigClusterResolver
        assert module.UnionResolver is UnionClusterResolver
