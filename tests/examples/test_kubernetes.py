"""The manifests of `examples/kubernetes`: valid, and each pod finds the others."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from weft.cluster.resolver.resolve import resolve

MANIFEST = Path(__file__).parents[2] / "examples" / "kubernetes" / "jobset.yaml"
SCHEMA = json.loads((Path(__file__).parent / "jobset_schema.json").read_text())


@pytest.fixture
def jobset():
    return yaml.safe_load(MANIFEST.read_text())


def faults(jobset):
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(jobset)]


def test_it_is_valid(jobset):
    assert faults(jobset) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("spec", "sucessPolicy"), {}, "'sucessPolicy' was unexpected"),
        (("spec", "replicatedJobs", 0, "name"), "Ps", "does not match"),
        (("spec", "replicatedJobs", 1, "template", "spec", "completions"), "1", "not of type"),
        (("spec", "successPolicy", "operator"), "Some", "is not one of"),
        (("spec", "replicatedJobs"), [], "non-empty"),
    ],
)
def test_the_check_can_fail(jobset, path, value, fault):
    changed = place = copy.deepcopy(jobset)
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert any(fault in text for text in faults(changed)), faults(changed)


def pods(jobset):
    """The name in the DNS, the job and the number of each pod, as JobSet gives them."""
    name, subdomain = jobset["metadata"]["name"], jobset["spec"]["network"]["subdomain"]
    for job in jobset["spec"]["replicatedJobs"]:
        for index in range(job["template"]["spec"]["completions"]):
            pod = job["template"]["spec"]["template"]["spec"]
            yield f"{name}-{job['name']}-0-{index}.{subdomain}", job["name"], index, pod


def test_each_pod_tells_its_program_the_cluster(jobset, tmp_path, monkeypatch):
    """The container's own command runs, with a program that prints what it was told."""
    python = tmp_path / "python"
    python.write_text(f'#!{sys.executable}\nimport os\nprint(os.environ["TF_CONFIG"])\n')
    python.chmod(0o755)
    names = {job["name"] for job in jobset["spec"]["replicatedJobs"]}
    assert set(jobset["spec"]["successPolicy"]["targetReplicatedJobs"]) <= names
    for host, job, index, pod in pods(jobset):
        container = pod["containers"][0]
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB": job,
               "JOB_COMPLETION_INDEX": str(index)}  # fmt: skip
        command = [*container["command"], *container["args"]]
        told = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        monkeypatch.setenv("TF_CONFIG", told.stdout)
        found = resolve()
        assert (found.job_name, found.task_index) == (job, index)
        address = found.cluster.task_address(job, index)
        assert address == f"{host}:{container['ports'][0]['containerPort']}"
        assert found.is_chief == (job == "chief")
    assert sum(found.cluster.num_tasks(job) for job in names) == len(list(pods(jobset)))
