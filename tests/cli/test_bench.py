"""`weft bench`, on networks small enough to be quick."""

import json

import pytest

import weft as wf
from weft import models, nn
from weft.cli import main, workload
from weft.cli.workload import WORKLOADS, Workload
from weft.runtime.measurement.profile import watchers

# What the peers' benchmark prints, in its order.
FIELDS = [
    "framework", "model", "mode", "batch", "unit", "throughput", "step_ms", "first_step_s",
    "params", "peak_rss_mb",
]  # fmt: skip


def tiny_images(batch):
    return (wf.randn(batch, 3, 8, 8),), wf.randint(0, 10, (batch,))


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    big = WORKLOADS["resnet50"]

    def make():
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(1),
                             nn.Dropout(), nn.Linear(288, 10))  # fmt: skip

    monkeypatch.setitem(
        WORKLOADS, "tiny",
        Workload(make, 4, "images/s", 1, tiny_images, big.loss, big.optimize),
    )  # fmt: skip


def run(capsys, *arguments):
    code = main.main(["bench", *arguments])
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    ("extra", "mode", "batch"),
    [
        ((), "eager", 4),
        (("--dtype", "bfloat16", "--batch", "2", "--threads", "1"), "eager_bfloat16", 2),
        (("--inference",), "inference", 1),
    ],
)
def test_json_has_the_fields_of_the_peers(capsys, extra, mode, batch):
    code, said = run(capsys, "tiny", "--json", "--seconds", "0", *extra)
    assert code == 0
    found = json.loads(said.out)
    assert list(found) == FIELDS
    assert (found["model"], found["mode"], found["batch"]) == ("tiny", mode, batch)
    assert found["framework"] == f"weft {wf.__version__}"
    assert found["params"] == 3 * 8 * 9 + 8 + 16 + 288 * 10 + 10
    assert found["throughput"] == pytest.approx(batch / found["step_ms"] * 1e3, rel=0.2)
    assert found["peak_rss_mb"] > 20


def test_people_get_a_table(capsys):
    _, said = run(capsys, "tiny", "--seconds", "0")
    assert "images/s" in said.out and "3,130 parameters" in said.out


def test_an_unknown_model_raises_with_the_names(capsys):
    code, said = run(capsys, "resnet")
    assert code == 2 and not said.out
    assert said.err == (
        "weft bench: unknown model 'resnet': expected one of alexnet, vgg19, resnet50, "
        "mobilenet, gnmt, ncf, tiny\n"
    )


def test_invalid_numbers_raise(capsys):
    for option in ("--batch", "--threads"):
        with pytest.raises(SystemExit):
            run(capsys, "tiny", option, "0")
        assert f"argument {option}: expected an integer from 1, got '0'" in capsys.readouterr().err


def test_a_profile_tells_each_kernel_and_writes_a_trace(capsys, tmp_path):
    file = tmp_path / "trace.json"
    code, said = run(capsys, "tiny", "--profile", "--json", "--trace", str(file))
    assert code == 0
    found = json.loads(said.out)
    assert found["peak_gflops"] > 1 and found["peak_gbytes"] > 0.1
    assert any("conv" in kernel["name"] for kernel in found["kernels"])
    assert any("4x3x8x8" in kernel["work"] for kernel in found["kernels"])
    assert all(kernel["ms"] > 0 for kernel in found["kernels"])
    assert 0 <= found["idle_ms"] <= found["step_ms"] * 1.5
    events = [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]
    kernels = [e for e in events if e["tid"] > 0]
    (program,) = [e for e in events if e["tid"] == 0]
    assert {e["name"] for e in kernels} == {k["name"] for k in found["kernels"]}
    for event in kernels:
        assert program["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= program["ts"] + program["dur"] + 1e-3


def test_the_profile_prints(capsys):
    _, said = run(capsys, "tiny", "--profile")
    assert "GFLOP/s" in said.out and "of peak" in said.out and "no kernel at work" in said.out


def test_nothing_is_recorded_afterwards(capsys):
    run(capsys, "tiny", "--profile")
    assert not watchers


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("alexnet", 61_100_840), ("mobilenet", 4_231_976), ("ncf", 31_832_577)],
)
def test_the_networks_are_those_of_the_peers(name, parameters):
    made = WORKLOADS[name].make()
    assert sum(p.numel() for p in made.parameters()) == parameters


def test_batches_have_the_peers_shapes():
    (source, target), labels = WORKLOADS["gnmt"].data(3)
    assert source.shape == target.shape == labels.shape == (3, 25)
    (x,), y = WORKLOADS["vgg19"].data(2)
    assert x.shape == (2, 3, 224, 224) and y.shape == (2,)
    assert {n: w.batch for n, w in WORKLOADS.items() if n != "tiny"} == {
        "alexnet": 32, "vgg19": 4, "resnet50": 16, "mobilenet": 16, "gnmt": 16, "ncf": 16384,
    }  # fmt: skip


def test_sentences_are_scored_word_by_word():
    work = workload.workload("gnmt")
    small = Workload(
        lambda: models.GNMT(32000, 8), 2, work.unit, work.items, work.data, work.loss, work.optimize
    )
    step = workload.training_step(small, small.make(), 2)
    assert step() == pytest.approx(10.4, abs=0.3)  # log(32000)
