"""The page of results is made from cells that separate runs measured."""

import json
import xml.etree.ElementTree as ET

import pytest

from bench import page, plot, sections, store
from bench.contest import Contestant, contest, spread, time_steps


def contestant(name, seconds, resident=2**30):
    one = Contestant("training:ncf", name, 2)
    one.seconds, one.resident, one.first = list(seconds), resident, 1.5
    return one


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "FILE", tmp_path / "results.json")
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    return tmp_path


def test_a_ratio_is_the_median_of_the_rounds():
    ours, theirs = contestant("weft", [1.0, 2.0, 1.0]), contestant("torch", [3.0, 4.0, 1.5])
    assert spread(theirs, ours) == (2.0, 1.5, 3.0)


def test_runs_of_some_contestants_update_their_cells(folder):
    ours = contestant("weft", [0.1, 0.1], 2**29)
    found = [ours, contestant("torch", [0.3, 0.3]), contestant("torch_compile", [0.2, 0.2])]
    page.write(store.save("training", "ncf", store.cells(found)))
    absent = contestant("torch_tuned", [])
    absent.absent = "not installed"
    again = [ours, contestant("torch_compile", [0.15, 0.15]), absent]
    page.write(store.save("training", "ncf", store.cells(again)))
    row = json.loads(store.FILE.read_text())["sections"]["training"]["ncf"]
    assert set(row) == {"weft", "torch", "torch_compile"}
    assert row["torch"]["ratio"] == pytest.approx(3.0)
    name, best = page.fastest(row)
    assert (name, best["ratio"]) == ("torch_compile", pytest.approx(1.5))
    text = (folder / "results.md").read_text()
    assert "**1.50 (1.50 to 1.50)** compile" in text
    assert "3.00 (3.00 to 3.00)" in text and "| 0.50 |" in text  # untuned, memory
    assert "| JAX |" not in text
    ET.parse(folder / "training.svg")


def test_ratios_to_another_weft_are_dropped(folder, monkeypatch):
    ours, theirs = contestant("weft", [0.1]), contestant("torch", [0.3])
    store.save("training", "ncf", store.cells([ours, theirs]))
    monkeypatch.setattr(store, "stamp", lambda: {"date": "2026-01-01 00:00", "commit": "next"})
    store.save("training", "ncf", store.cells([ours, contestant("torch_tuned", [0.2])]))
    row = store.load()["sections"]["training"]["ncf"]
    assert set(row) == {"weft", "torch_tuned"}


def test_another_machine_starts_again(folder, monkeypatch):
    store.save("first", "ncf", {"empty cache": 1.0, "full cache": 0.1})
    monkeypatch.setattr(store, "machine", lambda: {"processor": "other", "processors": 64,
                                                   "memory_gb": 1})  # fmt: skip
    assert store.load()["sections"] == {}


def test_each_section_has_its_table(folder):
    kernel = {"name": "matmul", "work": "2x2 -> 2x2", "calls": 1, "ms": 1.0, "flops": 1e9,
              "bytes": 1e6, "gflops": 100.0, "gbytes": 1.0, "share": 0.8}  # fmt: skip
    copied = {**kernel, "name": "copy", "flops": 0.0, "gflops": 0.0}
    row = {"step_ms": 2.0, "idle_ms": 0.1, "peak_gflops": 125.0, "peak_gbytes": 20.0,
           "kernels": [kernel, *[copied] * 25]}  # fmt: skip
    store.save("roofline", "ncf", {**row, **store.stamp()}, whole=True)
    first = {
        "empty cache": 4.0,
        "full cache": 1.0,
        "empty cache, loss": 3.0,
        "full cache, loss": 0.9,
    }
    store.save("first", "resnet50", {**first, **store.stamp()})
    losses = {"weft": 1.0, "torch": 1.0, "difference": 0.0, "dtype": "float32", "steps": 20}
    page.write(store.save("agreement", "ncf", {**losses, **store.stamp()}))
    text = (folder / "results.md").read_text()
    assert "| `matmul` | 2x2 -> 2x2 | 1 | 1.00 | 3.8% | 100.0 | 1.0 | 80% |" in text
    assert (
        "6 more" in text and "| ResNet-50 | 3.00 | 4.00 | 0.90 | 1.00 |" in text and "0e+00" in text
    )
    circles = [e for e in ET.parse(folder / "roofline.svg").iter() if e.tag.endswith("circle")]
    assert len(circles) == 1  # kernels without arithmetic are not plotted


def test_the_axis_has_round_numbers():
    assert plot._steps(1.0)[-1] == 1.0 and plot._steps(2.3)[-1] == 2.5
    assert plot._steps(250.0)[-1] >= 250


def test_slow_steps_are_not_repeated_for_their_own_sake(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("bench.contest.time.perf_counter", lambda: float(next(clock)))
    count = []
    assert time_steps(lambda: count.append(1), 0.5) == 1.0
    assert len(count) == 1


def test_a_contestant_that_fails_says_so():
    (one,) = contest("training:nothing", ["weft"], 1, 1)
    assert one.absent.startswith("failed (ConfigError: unknown model 'nothing'")


def test_every_network_has_peers_and_a_title():
    assert set(sections.NETWORKS) == set(page.MODELS)
    assert "jax" in sections.peers_of("resnet50") and "jax" not in sections.peers_of("ncf")
    for name in sections.NETWORKS:
        assert set(sections.peers_of(name)) <= set(plot.PEERS) <= set(page.TITLES)


def test_loops_have_a_table_with_bars_and_who_is_absent(folder):
    ours, theirs = contestant("weft", [0.1, 0.2]), contestant("torch", [0.3, 0.4])
    row = {"title": "LSTM", "bars": {"torch": 1.7}, "figure": "9 ns", "absent": ["jax"]}
    cells = store.cells([ours, theirs])
    store.save("loops", "lstm", {**cells, **row, "beside": []}, whole=True)
    first = {"weft": {"10": 0.5, "200": 2.0}, "torch": {"10": 0.25}}
    page.write(store.save("unrolled", "lstm", {"first": first, **store.stamp()}, whole=True))
    text = (folder / "results.md").read_text()
    assert "| LSTM | 150 | PyTorch 2.50 (2.00 to 3.00), bar 1.7; JAX absent | 9 ns |" in text
    assert "| steps | 10 | 200 |" in text
    assert "| PyTorch | 0.25 |  |" in text
