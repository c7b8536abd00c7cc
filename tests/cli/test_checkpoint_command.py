"""`weft checkpoint`: lists, shows, compares and verifies checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.tf1.tensorflow_files import unpack
from weft.checkpoint import Checkpointer, Slice
from weft.cli.main import main


@pytest.fixture
def run(capsys):
    def called(*arguments):
        code = main(["checkpoint", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return called


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    with Checkpointer(path) as checkpoints:
        for step in (10, 20):
            model = {"w": wf.full((2, 3), float(step)), "b": wf.zeros(3)}
            checkpoints.save(step, {"model": model, "epoch": step}, {"loss": 1 / step})
    return path


def test_ls_and_show(run, folder):
    assert run("ls", folder) == (0, "step 10: 0.0 MB, loss 0.1\nstep 20: 0.0 MB, loss 0.05\n")
    code, said = run("show", folder)
    assert code == 0 and "model.w: float32(2, 3)\nmodel.b: float32(3,)\nepoch = 20" in said
    assert "checkpoint step-20: 2 arrays" in said
    assert "epoch = 10" in run("show", folder / "step-10")[1]


def test_verify_finds_damage(run, folder, tmp_path):
    assert run("verify", folder)[0] == 0
    path = next((folder / "step-20").glob("arrays*"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    code, said = run("verify", folder)
    assert code == 1 and "step-10: good: 2 arrays" in said and "step-20: load: " in said
    assert run("verify", path)[0] == 2 and run("verify", folder / "step-10")[0] == 0
    (folder / "step-20" / "manifest.json").unlink()
    code, said = run("ls", folder)
    assert code == 1 and "step-20: checkpoint: " in said and "is not complete" in said
    code, said = run("verify", tmp_path)
    assert code == 2 and "has no checkpoints" in said


def test_diff(run, folder):
    assert run("diff", folder, folder / "step-20") == (0, "equal\n")
    code, said = run("diff", folder / "step-10", folder / "step-20")
    assert code == 1
    assert said == "model.w: 6 of 6 differ, at most by 10\nepoch = 10 | 20\n"
    wf.save({"w": wf.ones(2)}, folder / "a.safetensors")
    wf.save({"w": wf.ones(3), "v": wf.ones(3)}, folder / "b.safetensors")
    said = run("diff", folder / "a.safetensors", folder / "b.safetensors")[1]
    assert said == "+ v\nw: float32(2,) | float32(3,)\n"


def test_convert_and_the_formats_of_others(run, folder, tmp_path):
    unpack(tmp_path)
    for source in ("v2", "v2.index", "v2.data-00000-of-00001", "v1"):
        code, said = run("show", tmp_path / source)
        assert code == 0 and "a/w: float32(2, 2)" in said and "TensorFlow's checkpoint: " in said
    assert "text = [[b'a', b'bcd']" in run("show", tmp_path / "parts")[1]
    plain = tmp_path / "plain.safetensors"
    assert run("convert", tmp_path / "v2", plain)[0] == 0
    assert run("convert", plain, tmp_path / "back.index")[0] == 0
    for end in (".index", ".data-00000-of-00001"):
        assert (tmp_path / f"back{end}").read_bytes() == (tmp_path / f"v2{end}").read_bytes()
    code, said = run("convert", folder, plain)
    assert code == 0 and "2 arrays; 1 values are not arrays: omitted" in said
    np.testing.assert_array_equal(wf.load(plain)["model.w"].numpy(), np.full((2, 3), 20.0))
    code, said = run("convert", folder, tmp_path / "a.other")
    assert code == 2 and "expected a target that ends in .safetensors or .index" in said
    code, said = run("show", tmp_path / "nothing")
    assert code == 2 and "there is no" in said


def test_pieces_are_shown_as_wholes(run, tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, {"w": Slice(wf.ones(4, 2), (4, 2), (0, 0))})
    assert "w: float32(4, 2)" in run("show", tmp_path)[1]
