"""Writes a run with every kind of value, starts TensorBoard on it, and checks what it serves.

Run `pip install -e ".[tensorboard]"`, then `python -m tools.tensorboard_check`.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft as wf
from weft.utils.tensorboard import SummaryWriter

PATIENCE: Final = 60.0  # seconds
STEPS: Final = 20


def write_run(folder: Path) -> None:
    """Writes a run with every kind of value, and two with hyperparameters."""
    draw = np.random.default_rng(0)
    with SummaryWriter(folder / "run") as writer:
        for step in range(STEPS):
            writer.add_scalar("loss", 1 / (step + 1), step)
            writer.add_scalar("accuracy", step / STEPS, step, new_style=True)
            writer.add_histogram("weights", draw.standard_normal(1000) + step / STEPS, step)
        writer.add_text("note", "some **bold** text")
        writer.add_image("image", draw.random((3, 32, 48)))
        writer.add_video("video", draw.random((1, 8, 3, 32, 32)))
        writer.add_audio("beep", np.sin(np.arange(8000) / 10), sample_rate=8000)
        writer.add_pr_curve("curve", draw.integers(0, 2, 100), draw.random(100))
        writer.add_mesh("mesh", draw.random((1, 50, 3)), faces=draw.integers(0, 50, (1, 20, 3)))
        writer.add_custom_scalars({"all": {"both": ["Multiline", ["loss", "accuracy"]]}})
        writer.add_embedding(draw.random((20, 5)), [f"n{i}" for i in range(20)])
        net = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.BatchNorm1d(8), wf.nn.ReLU())
        writer.add_graph(net, wf.ones(2, 4))
        write_profile(writer, net)
        for rate in (0.1, 0.01):
            writer.add_hparams({"lr": rate}, {"final": 1 - rate}, run_name=f"lr{rate}")


def write_profile(writer: SummaryWriter, net: Any) -> None:
    """The kernels of a compiled step."""
    x = wf.randn(32, 4)
    for _ in range(3):
        net(x).detach().numpy()
    with writer.profile("kernels", 3):
        net(x).detach().numpy()


class Board:
    """TensorBoard, started on a folder."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{probe.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder)]
        command += ["--port", port, "--host", "127.0.0.1", "--load_fast", "false"]
        self.process = subprocess.Popen(command)

    def ask(self, path: str, **query: Any) -> Any:
        """TensorBoard's answer to a request."""
        url = f"{self.address}/data/plugin/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            content = answer.read()
        return json.loads(content) if content[:1] in b"{[" else content

    def wait(self) -> None:
        """Returns once TensorBoard has read the runs."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if len(self.ask("scalars/tags")) >= 3:
                    return
            except urllib.error.URLError:
                pass  # it does not serve yet
            time.sleep(0.5)
        raise TimeoutError(f"TensorBoard did not read the runs within {PATIENCE:.0f} s")


def answers(board: Board) -> dict[str, bool]:
    """Each request, and whether its answer is correct."""

    def of(name: str) -> dict[str, Any]:
        return dict(run="run", tag=name, sample=0)

    loss = board.ask("scalars/scalars", **of("loss"))
    image = board.ask("images/images", **of("image"))[0]["query"]
    asked = json.dumps({"allowedStatuses": ["STATUS_SUCCESS"], "sliceSize": 9})
    groups = board.ask("hparams/session_groups", request=asked)
    tags = {
        kind: board.ask(f"{kind}/tags")["run"]
        for kind in ("histograms", "images", "audio", "text", "pr_curves", "mesh")
    }
    return {
        "scalars": [s for _, s, _ in loss] == list(range(STEPS)) and loss[1][2] == 0.5,
        "scalars, new style": len(board.ask("scalars/scalars", **of("accuracy"))) == STEPS,
        "histograms": len(board.ask("histograms/histograms", **of("weights"))) == STEPS,
        "text": "note/text_summary" in tags["text"],
        "images": set(tags["images"]) == {"image", "video"},
        "image's bytes": board.ask(f"images/individualImage?{image}&").startswith(b"\x89PNG"),
        "audio": set(tags["audio"]) == {"beep"},
        "precision and recall": len(board.ask("pr_curves/pr_curves", **of("curve"))["run"]) == 1,
        "meshes": len(board.ask("mesh/meshes", **of("mesh"))) == 2,
        "layout": board.ask("custom_scalars/layout")["category"][0]["title"] == "all",
        "graph": b"Sequential/1/running_mean" in board.ask("graphs/graph", run="run"),
        "kernels' times": b"total_bytes"
        in board.ask("graphs/run_metadata", run="run/kernels", tag="step 3"),
        "embeddings": board.ask("projector/runs") == ["run"],
        "hyperparameters": len(groups["sessionGroups"]) == 2,
    }


def main() -> int:
    """Prints the answers; returns 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="go on until interrupted")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder))
        board = Board(Path(folder))
        try:
            board.wait()
            found = answers(board)
            for name, right in found.items():
                print(f"{name:24} {'right' if right else 'WRONG'}")
            if keep:
                board.process.wait()
        finally:
            board.process.terminate()
            board.process.wait()
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
