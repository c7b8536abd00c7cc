"""Profiles for TensorBoard: the kernel graph, times and memory, tables and traces."""

import json
from pathlib import Path

import pytest

import weft as wf
from weft import config
from weft.errors import ArgumentError
from weft.formats import wire
from weft.formats.event.reading import read_events
from weft.formats.event.xplane import Span, xspace
from weft.utils.tensorboard import SummaryWriter


def parts(raw, number):
    return [f.value for f in wire.fields(raw) if f.number == number]


def texts(raw, number):
    return [bytes(v).decode() for v in parts(raw, number)]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """The folder of a profile of two layers and their gradients, taken at step 7."""
    folder = tmp_path_factory.mktemp("profile")
    model = wf.nn.Sequential(wf.nn.Linear(64, 32), wf.nn.Tanh(), wf.nn.Linear(32, 8))
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    x = wf.randn(16, 64)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    with config.override(compile=True):
        for _ in range(2):
            step()
        with SummaryWriter(folder) as writer, writer.profile("step", 7):
            step()
    return folder


def test_the_timeline_and_the_text_tell_the_tier_of_each_run(profiled):
    events = json.loads((profiled / "step" / "7.trace.json").read_text())["traceEvents"]
    (track,) = [e["tid"] for e in events if e.get("args", {}).get("name") == "tiers"]
    told = [e["name"] for e in events if e.get("tid") == track and e["ph"] == "X"]
    assert told == ["a program of its own"]
    (path,) = profiled.glob("events.*")
    values = {v.tag: v for e in read_events(path) for v in e.values}
    assert values["step/tiers/text_summary"].tensor[0] == b"1 x a program of its own"


def test_kernels_are_a_graph_with_times_and_memory(profiled):
    (path,) = (profiled / "step").glob("events.*")
    _, drawn, timed = read_events(path)
    nodes = parts(drawn.graph_def, 1)
    names = [texts(node, 1)[0] for node in nodes]
    assert len(set(names)) == len(names) > 3
    earlier = set()
    for node, name in zip(nodes, names, strict=True):
        assert set(texts(node, 3)) <= earlier  # a kernel reads what those before it have written
        earlier.add(name)
    assert sum(bool(texts(node, 3)) for node in nodes) > len(nodes) // 2
    tag, metadata = timed.run_metadata
    assert tag == "step 7"
    device = parts(parts(metadata, 1)[0], 1)[0]
    stats = parts(device, 2)
    assert [texts(each, 1)[0] for each in stats] == names
    assert sum(parts(each, 5)[0] for each in stats) > 0  # microseconds
    written = {texts(s, 1)[0]: parts(m, 2)[0] for s in stats for m in parts(s, 6)}
    assert max(written.values()) >= 4 * 32 * 64  # the gradient of the larger weight


def test_texts_scalars_and_traces(profiled):
    (path,) = profiled.glob("events.*")
    values = {v.tag: v for e in read_events(path) for v in e.values if e.step == 7}
    assert values["step/milliseconds"].simple_value > 0
    assert values["step/arena_megabytes"].simple_value > 0
    table = values["step/kernels/text_summary"].tensor[0].decode()
    assert table.startswith("| kernel | reads -> writes |")
    assert "16x64" in table
    assert values["step/memory/text_summary"].tensor[0].startswith(b"    arena ")
    trace = json.loads((profiled / "step" / "7.trace.json").read_text())
    spans = {e["name"] for e in trace["traceEvents"] if e["ph"] == "X"}
    (plane,) = (profiled / "plugins" / "profile" / "step-7").glob("*.xplane.pb")
    space = parts(plane.read_bytes(), 1)[0]
    known = {texts(parts(entry, 2)[0], 2)[0] for entry in parts(space, 4)}
    assert known
    assert known <= spans


def test_spans_as_the_profile_plugin_reads_them():
    spans = [Span("a", 5, 9, {"flops": 2.0}), Span("b", 10, 11, {"work": "3x4"}), Span("a", 12, 15)]
    space = xspace({"thread 0": spans[:2], "thread 1": spans[2:]}, 10**18, "host")
    assert texts(space, 4) == ["host"]
    plane = parts(space, 1)[0]
    assert texts(plane, 2) == ["/host:CPU"]
    first, second = parts(plane, 3)
    assert (texts(first, 2), parts(first, 3)) == (["thread 0"], [10**18])
    numbers = {texts(parts(e, 2)[0], 2)[0]: parts(e, 1)[0] for e in parts(plane, 4)}
    (event,) = parts(second, 4)
    found = [parts(event, field)[0] for field in (1, 2, 3)]
    assert found == [numbers["a"], 12_000, 3_000]  # picoseconds


def test_what_cannot_be_profiled(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with (
            pytest.raises(ArgumentError, match=r"profile: expected a compiled program .* got none"),
            writer.profile("nothing"),
        ):
            pass
        with pytest.raises(KeyError), writer.profile("failed"):
            raise KeyError
    assert [p.name for p in Path(tmp_path).iterdir() if p.is_dir()] == []
