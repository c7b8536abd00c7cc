"""Cluster specs: what tasks there are, and when two specs contradict each other."""

import pytest

import weft.tf1 as tf
from weft.cluster.spec import ClusterDef, JobDef
from weft.errors import ArgumentError, DTypeError

SPEC = {"worker": ["a:1", "b:1"], "ps": {2: "c:1", 0: "d:1"}}


def test_a_spec_answers_as_tensorflow_does():
    spec = tf.train.ClusterSpec(SPEC)
    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == {"worker": ["a:1", "b:1"], "ps": {0: "d:1", 2: "c:1"}}
    assert spec.num_tasks("ps") == 2 and spec.task_indices("ps") == [0, 2]
    assert spec.job_tasks("ps") == ["d:1", None, "c:1"]
    assert spec.task_address("worker", 1) == "b:1"
    assert bool(spec) and not tf.train.ClusterSpec({})
    again = tf.train.ClusterSpec(spec.as_cluster_def())
    assert again == spec == tf.train.ClusterSpec(spec) and hash(again) == hash(spec)
    assert again != tf.train.ClusterSpec({"worker": ["a:1"]})
    assert tf.train.ClusterSpec(ClusterDef([JobDef("ps", {0: "d:1"})])).as_dict() == {"ps": ["d:1"]}


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (["a:1"], DTypeError, "expected a dict from names of jobs"),
        ({1: ["a:1"]}, DTypeError, "expected the name of a job, got 1"),
        ({"ps": "a:1"}, DTypeError, "job 'ps': expected a list of addresses"),
        ({"ps": [7]}, DTypeError, "job 'ps', task 0: expected an address"),
        ({"ps": {"x": "a:1"}}, DTypeError, "expected the number of a task, got 'x'"),
        ({"ps": ["a:1"], "worker": ["a:1"]}, ArgumentError, "have the same address a:1"),
    ],
)
def test_wrong_specs(given, error, text):
    with pytest.raises(error, match=text):
        tf.train.ClusterSpec(given)


def test_what_does_not_exist_is_listed():
    spec = tf.train.ClusterSpec(SPEC)
    with pytest.raises(ValueError, match="no job 'chief'; the jobs are ps, worker"):
        spec.num_tasks("chief")
    with pytest.raises(ValueError, match="job 'ps' has no task 1; its tasks are 0, 2"):
        spec.task_address("ps", 1)


def test_contradictions():
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"]})
    partial = tf.train.ClusterSpec({"worker": {1: "b:1"}, "ps": ["c:1"]})
    assert spec.contradiction(partial) == partial.contradiction(spec) == ""
    longer = tf.train.ClusterSpec({"worker": ["a:1", "b:1", "e:1"]})
    assert spec.contradiction(longer) == "job 'worker' has 2 tasks here, 3 there"
    moved = tf.train.ClusterSpec({"worker": {1: "x:1"}})
    assert spec.contradiction(moved) == "/job:worker/replica:0/task:1 is b:1 here, x:1 there"
