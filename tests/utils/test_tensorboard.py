"""SummaryWriter: each method's file, read back; graph scopes; crashes and errors."""

import os
import signal
import subprocess
import sys
import threading
import wave
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from patience import eventually

import weft as wf
from weft.errors import ArgumentError, ClosedError, DTypeError, ShapeError
from weft.formats import wire
from weft.formats.event import picture
from weft.formats.event.file import EventFile
from weft.formats.event.reading import read_events
from weft.utils.tensorboard import SummaryWriter
from weft.utils.tensorboard.model_graph import model_nodes

RNG = np.random.default_rng(0)


@pytest.fixture
def writer(tmp_path):
    with SummaryWriter(tmp_path) as made:
        yield made


def events(writer, folder="."):
    writer.close()
    (path,) = (Path(writer.log_dir) / folder).glob("events.out.tfevents.*")
    first, *rest = read_events(path)
    assert first.file_version == "brain.Event:2"
    return rest


def values(writer, folder="."):
    return {v.tag: v for e in events(writer, folder) for v in e.values}


def pixels(png):
    """An image written without filters, from its PNG."""
    height, width, channels = picture.size_of(png)
    start = png.index(b"IDAT")
    size = int.from_bytes(png[start - 4 : start], "big")
    raw = np.frombuffer(zlib.decompress(png[start + 4 : start + 4 + size]), np.uint8)
    rows = raw.reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


def test_scalars(writer):
    loss = wf.tensor([0.5], requires_grad=True)
    writer.add_scalar("loss", loss, 3, walltime=12.5)
    writer.add_scalar("loss", np.float32(0.25), wf.tensor(4))
    writer.add_scalar("new", 1 / 3, 5, new_style=True, double_precision=True)
    first, second, third = events(writer)
    assert (first.wall_time, first.step, first.values[0].simple_value) == (12.5, 3, 0.5)
    assert (second.step, second.values[0].simple_value) == (4, 0.25)
    assert third.values[0].tensor == 1 / 3 and third.values[0].plugin == "scalars"


def test_whole_tensors(writer):
    x = wf.arange(6).reshape(2, 3)
    writer.add_tensor("x", x, 4)
    with pytest.raises(DTypeError, match="add_tensor: 't': expected numbers, got <U1"):
        writer.add_tensor("t", np.array(["a"]))
    (event,) = events(writer)
    (value,) = event.values
    assert (event.step, value.plugin, value.tensor.tolist()) == (4, "tensor", x.tolist())


def test_scalars_of_one_chart_are_runs(writer):
    writer.add_scalars("a/b", {"x": 1, "y": 2}, 7)
    writer.flush()
    assert values(writer, "a_b_x")["a/b"].simple_value == 1
    assert values(writer, "a_b_y")["a/b"].simple_value == 2


def test_histogram(writer):
    x = RNG.standard_normal(1000)
    writer.add_histogram("h", wf.tensor(x))
    writer.add_histogram("even", x, bins=10, max_bins=5)
    writer.add_histogram_raw("raw", 0, 3, 2, 3, 9, [1, 2], [1, 1])
    found = {tag: v.histogram for tag, v in values(writer).items()}
    h = found["h"]
    np.testing.assert_allclose(
        [h[i] for i in range(1, 6)], [x.min(), x.max(), 1000, x.sum(), x @ x]
    )
    assert h[7][0] == 0 and h[7].sum() == 1000 and len(h[6]) == len(h[7])
    for number, (left, right) in enumerate(zip(h[6], h[6][1:], strict=False)):
        assert h[7][number + 1] == ((x >= left) & (x < right)).sum()
    assert len(found["even"][7]) == 6 and found["even"][7].sum() == 1000
    assert found["raw"][6].tolist() == [1, 2]


def test_images(writer):
    gray = RNG.integers(0, 256, (5, 6), np.uint8)
    color = RNG.random((3, 4, 6)).astype(np.float32)
    writer.add_image("gray", gray, dataformats="HW")
    writer.add_image("color", wf.tensor(color))
    writer.add_images("grid", np.stack([color] * 9))
    found = {tag: pixels(v.image) for tag, v in values(writer).items()}
    np.testing.assert_array_equal(found["gray"][..., 0], gray)
    expected = (color * 255).astype(np.uint8).transpose(1, 2, 0)
    np.testing.assert_array_equal(found["color"], expected)
    assert found["grid"].shape == (8, 48, 3) and not found["grid"][4:, 6:].any()
    np.testing.assert_array_equal(found["grid"][4:, :6], expected)


def test_video_sound_and_figures(writer):
    class Figure:
        dpi = 100

        def savefig(self, file, format, dpi):
            file.write(picture.png(np.zeros((2, 3, 4), np.uint8)))

    writer.add_video("video", RNG.random((2, 3, 1, 4, 4)), fps=10)
    writer.add_audio("sound", [0.0, 1.0, -1.0], sample_rate=8000)
    writer.add_figure("figures", [Figure(), Figure()])
    found = values(writer)
    video = found["video"].image
    assert [video.count(kind) for kind in (b"acTL", b"fcTL", b"IDAT", b"fdAT")] == [1, 3, 1, 2]
    assert picture.size_of(video) == (4, 8, 1)
    with wave.open(BytesIO(found["sound"].audio)) as sound:
        assert sound.getframerate() == 8000
        assert np.frombuffer(sound.readframes(3), "<i2").tolist() == [0, 32767, -32767]
    assert picture.size_of(found["figures/1"].image) == (2, 3, 4)


def test_values_of_plugins(writer):
    writer.add_text("t", "**bold**")
    writer.add_pr_curve("pr", [1, 0, 1, 1], [0.9, 0.1, 0.6, 0.2], num_thresholds=3)
    writer.add_mesh("m", np.ones((1, 4, 3)), faces=np.zeros((1, 2, 3)))
    writer.add_custom_scalars({"c": {"one": ["Multiline", ["a"]], "two": ["Margin", list("abc")]}})
    found = values(writer)
    assert found["t/text_summary"].tensor == [b"**bold**"]
    # Thresholds 0, 0.5 and 1: hits, false alarms, true negatives, misses.
    counts = [[3, 2, 0], [1, 0, 0], [0, 1, 1], [0, 1, 3]]
    np.testing.assert_array_equal(found["pr"].tensor[:4], counts)
    np.testing.assert_allclose(found["pr"].tensor[4:], [[0.75, 1, 0], [1, 2 / 3, 0]])
    assert found["m_VERTEX"].tensor.dtype == np.float32 and found["m_FACE"].tensor.dtype == np.int32
    assert found["m_FACE"].plugin == "mesh"
    (content,) = found["custom_scalars__config__"].tensor
    assert [f.number for f in wire.fields(content)] == [2]


def test_hyperparameters_are_a_run(writer):
    writer.add_hparams(
        {"lr": 0.1, "opt": "sgd", "on": True}, {"acc": wf.tensor(0.5)}, {"lr": [0.1, 0.2]}, "one"
    )
    found = values(writer, "one")
    assert found["acc"].simple_value == 0.5
    names = [f"_hparams_/{n}" for n in ("experiment", "session_start_info", "session_end_info")]
    assert all([found[name].plugin == "hparams" for name in names])
    with pytest.raises(DTypeError, match="hparams: 'lr': expected a number, string or boolean"):
        writer.add_hparams({"lr": [1]}, {})


def test_embedding(writer, tmp_path):
    images = RNG.random((3, 1, 2, 4))
    header = ["a", "b"]
    writer.add_embedding(
        np.eye(3), [("x", 1), ("y\n", 2), ("z", 3)], images, 2, metadata_header=header
    )
    place = tmp_path / "00002" / "default"
    assert (place / "metadata.tsv").read_text() == "a\tb\nx\t1\ny \t2\nz\t3\n"
    assert (place / "tensors.tsv").read_text().splitlines()[1] == "0.0\t1.0\t0.0"
    assert pixels((place / "sprite.png").read_bytes()).shape == (4, 8, 1)
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_path: "00002/default/tensors.tsv"' in config
    assert "single_image_dim: 4\nsingle_image_dim: 2" in config


class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = wf.nn.Sequential(wf.nn.Linear(4, 3), wf.nn.ReLU(), wf.nn.BatchNorm1d(3))
        self.head = wf.nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.body(x)).softmax(-1)


def test_a_graph_has_a_scope_for_each_module(writer):
    net = Net()
    nodes = {node.name: node for node in model_nodes(net, (wf.ones(5, 4),))}
    scopes = {name.rpartition("/")[0] for name in nodes}
    expected = {"Net", "Net/body/0", "Net/body/1", "Net/body/2", "Net/head", "input", "output"}
    assert scopes == expected
    assert nodes["Net/body/0/weight"].op == "parameter"
    assert nodes["Net/body/2/running_mean"].op == "buffer"
    assert nodes["Net/body/1/relu"].shapes == [(5, 3)]
    known = set(nodes) | {f"{name}:{i}" for name in nodes for i in (1, 2)}
    assert all([each in known for node in nodes.values() for each in node.inputs])
    assert net.body[2].num_batches_tracked == 0 and not net.head._forward_hooks
    writer.add_graph(net, wf.ones(5, 4))
    (event,) = events(writer)
    first = next(wire.fields(event.graph_def))
    assert wire.text(next(wire.fields(first.value)), "node") == "input/0"


def test_a_graph_of_a_function(capsys, writer):
    writer.add_graph(lambda x, y: x + y, (wf.ones(2), wf.ones(2)), verbose=True)
    assert "add(input/0, input/1)" in capsys.readouterr().out
    with pytest.raises(DTypeError, match="add_graph: expected a module or a function, got 1"):
        writer.add_graph(1)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda w: w.add_scalar("a", [1, 2]), ArgumentError, "'a': expected one number, got shape"),
        (lambda w: w.add_scalar("a", "x"), ArgumentError, "'a': expected one number, got 'x'"),
        (lambda w: w.add_histogram("a", []), ArgumentError, "'a': expected values, got an empty"),
        (lambda w: w.add_histogram("a", [1, np.nan]), ArgumentError, "got 1 of 2 that are NaN"),
        (lambda w: w.add_image("a", np.ones((2, 3))), ShapeError, "dataformats='CHW'"),
        (lambda w: w.add_image("a", np.ones((5, 2, 3))), ShapeError, "expected 1 to 4 channels"),
        (lambda w: w.add_pr_curve("a", [1], [2]), ArgumentError, "between 0 and 1"),
        (lambda w: w.add_pr_curve("a", [1], [1, 0]), ShapeError, "a label for each prediction"),
        (lambda w: w.add_mesh("a", np.ones((2, 3))), ShapeError, "expected .batch, count, 3"),
        (lambda w: w.add_embedding(np.eye(2), ["a"]), ShapeError, "metadata: expected 2, one per"),
        (lambda w: w.add_custom_scalars_marginchart(["a"]), ArgumentError, "expected .'Multiline'"),
        (lambda w: SummaryWriter(w.log_dir, max_queue=-1), ArgumentError, "at least 0, got -1"),
    ],
)
def test_what_cannot_be_written_raises(writer, call, error, said):
    with pytest.raises(error, match=said):
        call(writer)


def test_after_close_another_file_is_opened(writer, tmp_path):
    writer.add_scalar("a", 1)
    writer.close()
    writer.close()
    writer.add_scalar("a", 2)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2
    restarted = SummaryWriter(tmp_path / "again", purge_step=5)
    (event,) = events(restarted)
    assert (event.step, event.status) == (5, 1)


def test_what_was_flushed_outlives_a_kill(tmp_path):
    program = (
        "import os, signal\n"
        "from weft.utils.tensorboard import SummaryWriter\n"
        f"writer = SummaryWriter({str(tmp_path)!r})\n"
        "for step in range(50): writer.add_scalar('a', step, step)\n"
        "writer.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=os.getcwd())
    assert done.returncode == -signal.SIGKILL
    (path,) = tmp_path.iterdir()
    assert [e.step for e in read_events(path)][1:] == list(range(50))


def test_what_was_not_flushed_is_written_at_the_end(tmp_path):
    program = (
        "from weft.utils.tensorboard import SummaryWriter\n"
        f"writer = SummaryWriter({str(tmp_path)!r})\n"
        "for step in range(50): writer.add_scalar('a', step, step)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=os.getcwd())
    (path,) = tmp_path.iterdir()
    assert [e.step for e in read_events(path)][1:] == list(range(50))


def test_events_appear_after_some_time(tmp_path):
    with SummaryWriter(tmp_path, flush_secs=0.05) as writer:
        writer.add_scalar("a", 1)
        (path,) = tmp_path.iterdir()
        eventually(lambda: len(list(read_events(path, broken="skip"))) == 2)
        assert len(list(read_events(path))) == 2


def test_a_failing_write_is_reported_at_the_next_call(tmp_path):
    def fail():
        raise OSError(28, "No space left on device")

    file = EventFile(tmp_path)
    file.add(fail)
    with pytest.raises(OSError, match="No space left"):
        file.flush()
    file.flush()
    file.close()
    with pytest.raises(ClosedError, match="is closed: open another"):
        file.add(bytes)


def test_threads_write_whole_events(tmp_path):
    with SummaryWriter(tmp_path) as writer:

        def write(number):
            for step in range(50):
                writer.add_scalar(f"t{number}", step, step)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (path,) = tmp_path.iterdir()
    found = [(v.tag, e.step) for e in read_events(path) for v in e.values]
    assert len(found) == 200
    assert all([[s for t, s in found if t == f"t{n}"] == list(range(50)) for n in range(4)])
