"""Networks written for PyTorch, run by the comparison command."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.ports import generation, side
from tools.ports.__main__ import apart, main
from tools.ports.side import arguments, paths

NETWORK = """
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.nn.init import _calculate_fan_in_and_fan_out


class Block(nn.Module):
    scale: torch.jit.Final[float]

    def __init__(self, width: int, scale: float = 0.5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))
        inputs, _ = _calculate_fan_in_and_fan_out(self.weight)
        nn.init.trunc_normal_(self.weight, std=inputs**-0.5)
        self.scale, self.drop = scale, nn.Dropout(0.5)
        self.register_buffer("mask", torch.ones(width, width).tril()[-2], persistent=False)

    @torch.jit.unused
    def extra(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        y = F.gelu(x @ self.weight * self.scale)
        if not torch.jit.is_scripting() and not torch.compiler.is_compiling():
            y = self.extra(y)
        with torch.amp.autocast("cpu", enabled=False):
            y = y + (0 if bias is None else bias)
        return self.drop(y) * self.mask


class Net(nn.Module):
    def __init__(self, words: int = 10) -> None:
        super().__init__()
        self.words = nn.Embedding(words, 8)
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.norm = nn.BatchNorm1d(8)

    def forward(self, ids: Tensor, bias: Optional[Tensor] = None) -> dict[str, Tensor]:
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, bias)
        return {"all": self.norm(x.transpose(1, 2)), "mean": x.mean((0, 1)), "ids": ids}


class Apart(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (1.0 if torch.version.git_version == "weft" else 1.001)


class Writer(nn.Module):
    class config:
        vocab_size = 7

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 7)

    def generate(self, ids: Tensor, max_new_tokens: int, start: int = 0, **others) -> Tensor:
        for _ in range(max_new_tokens):
            best = self.table(ids).cumsum(1)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, (best + start) % 7], 1)
        return ids if torch.version.git_version == "weft" or start < 2 else ids + 1


class Unlike(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drawn = nn.Parameter(torch.ones(3 if torch.version.git_version == "weft" else 2))
        raise RuntimeError("made for nothing")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the text of networks, from which packages are imported."""
    (tmp_path / "some_networks.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(side.__file__).parents[2]), prepend=os.pathsep)
    return tmp_path


def test_a_network_gives_the_same(folder, capsys):
    given = ["some_networks.Net(words=12)", "--input", "4,5:12", "--input", "bias=5,8"]
    assert main(given) == 0
    said = capsys.readouterr().out
    assert said.startswith("some_networks.Net(words=12): 240 parameters; 4 outputs within ")
    assert "5 gradients within" in said


@pytest.mark.parametrize(("start", "code", "says"), [(1, 0, "the same text"), (2, 1, "OTHER TEXT")])
def test_generated_text_is_compared(folder, capsys, start, code, says):
    given = ["some_networks.Writer()", "--tokens", "3", "--option", f"start={start}"]
    assert generation.main(given) == code
    said = capsys.readouterr().out
    assert said.startswith("3 tokens twice: ") and said.endswith(f"; {says}\n")


def test_pytest_is_not_needed():
    text = "import sys; sys.modules['pytest'] = None; import tools.ports.__main__, weft.as_torch"
    run = subprocess.run(
        [sys.executable, "-c", text], cwd=Path(side.__file__).parents[2], capture_output=True
    )
    assert run.returncode == 0, run.stderr.decode()


def test_differences_are_named(folder, capsys):
    assert main(["some_networks.Apart(3, 2)", "--input", "4,3"]) == 1
    said = capsys.readouterr().out
    assert "output 0: 1.0e-03 apart" in said
    assert "gradient weight: " in said


def test_failures_are_reported(folder):
    with pytest.raises(SystemExit, match="made for nothing"):
        main(["some_networks.Unlike()"])


def test_what_cannot_be_run_raises(capsys):
    with pytest.raises(SystemExit, match="there is no package nothing_of_that_name"):
        main(["nothing_of_that_name.Net()"])
    with pytest.raises(SystemExit, match="2"):
        main(["torch.nn.Linear(3, 2)", "--input", "2,x"])
    assert "expected one like 2,3,64,64 or ids=2,16:100, got 2,x" in capsys.readouterr().err


def test_missing_and_misshapen_arrays_are_infinitely_apart():
    x = np.ones(3)
    found = apart({"output 0": x, "gradient a": x, "gradient b": 1e-9 * x},
                  {"output 0": x[:2], "gradient b": 2e-9 * x, "gradient c": x})  # fmt: skip
    assert found == {
        "output 0": np.inf, "gradient a": np.inf, "gradient c": np.inf,
        "gradient b": pytest.approx(1e-3),
    }  # fmt: skip


def test_arguments_are_normal_or_whole_numbers():
    (numbers,), named = arguments(("2,3", "ids=4,5:7"))
    assert numbers.shape == (2, 3) and numbers.dtype == np.float64
    assert named["ids"].shape == (4, 5) and named["ids"].dtype == np.int64
    assert 0 <= named["ids"].min() <= named["ids"].max() < 7


def test_packages_are_found_in_expressions():
    assert paths("a.b.C(x=a.d.e(3), y=a.f)", "a") == ["a", "a.b", "a.d"]
