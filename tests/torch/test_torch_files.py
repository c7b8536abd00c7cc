"""`wf.load` reads files of `torch.save` without running any of their pickle."""

from __future__ import annotations

import io
import os
import random
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as wf
from weft.errors import DataError

TYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16,
    torch.int32, torch.int64, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64,
    torch.complex64, torch.complex128,
)  # fmt: skip


def values(x: torch.Tensor) -> object:
    return x.detach().to(torch.float32).tolist() if x.dtype == torch.bfloat16 else x.tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_tensors_and_containers_are_those_saved(tmp_path, protocol):
    base = torch.arange(24.0).reshape(4, 6)
    state = {
        "types": [torch.ones(3).to(t) for t in TYPES],
        "views": (base[1:, ::2], base.T, base[0, 0], base[2:2], base.expand(2, 4, 6)),
        "tied": [base, base[:]],
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "size": torch.Size([2, 3]),
        7: [1, -5, 2**40, 0.5, True, None, "text", b"bytes", {1, 2}, 1 + 2j, bytearray(b"x")],
        "ordered": OrderedDict(a=1),
        "dtype": torch.device("cpu"),
    }
    path = tmp_path / "a.pt"
    torch.save(state, path, pickle_protocol=protocol)
    found = wf.load(path)
    assert found["types"][3].dtype == wf.bfloat16
    for kind in ("types", "views", "tied"):
        for x, y in zip(state[kind], found[kind], strict=True):
            assert str(x.dtype).removeprefix("torch.") == str(y.dtype).removeprefix("weft.")
            other = y.float() if y.dtype == wf.bfloat16 else y
            assert values(x) == other.tolist() and tuple(x.shape) == tuple(y.shape)
    assert found[7] == state[7] and found["size"] == (2, 3) and found["dtype"] == "cpu"
    assert found["ordered"] == {"a": 1} and found["parameter"].tolist() == [1.0, 1.0]
    found["tied"][0].fill_(0)
    assert found["tied"][1].sum() > 0


def test_a_model_and_its_optimizer_are_taken_over(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a")
    found = wf.load(tmp_path / "a")
    own = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.BatchNorm1d(4))
    own.load_state_dict(found["model"])
    x = torch.randn(5, 3)
    np.testing.assert_allclose(
        own.eval()(wf.from_numpy(x.numpy())).detach().numpy(),
        model.eval()(x).detach().numpy(), rtol=1e-5, atol=1e-6,
    )  # fmt: skip
    wf.optim.Adam(own.parameters()).load_state_dict(found["optimizer"])


def test_objects_and_other_formats_raise_by_name(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(DataError, match=r"got torch.nn.modules.linear.Linear|instruction NEWOBJ"):
        wf.load(path)
    torch.save({"x": np.float64(1)}, path)
    with pytest.raises(DataError, match="numpy"):
        wf.load(path)
    torch.save(torch.eye(2).to_sparse(), path)
    with pytest.raises(DataError, match=r"_get_layout|_rebuild_sparse_tensor"):
        wf.load(path)


def test_damaged_files_give_what_was_saved_or_an_error(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.arange(50), "n": [1, "text"]}, path)
    data, draw, seen = path.read_bytes(), random.Random(0), 0
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            broken[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(broken[: draw.choice([len(data), draw.randrange(len(data))])])
        try:
            found = wf.load(path)
        except DataError:
            seen += 1
        else:
            assert found["w"].tolist() == list(range(50)) and found["n"] == [1, "text"]
    assert seen > 150


def test_pickles_with_changed_bytes_run_nothing(tmp_path):
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(50).reshape(5, 10)[:, ::2], "n": [1, "text"]}, buffer)
    with zipfile.ZipFile(buffer) as archive:
        members = {i.filename: archive.read(i) for i in archive.infolist()}
    (name,) = [n for n in members if n.endswith("data.pkl")]
    draw, before = random.Random(1), set(os.listdir(tmp_path))
    for _ in range(500):
        pickled = bytearray(members[name])
        for _ in range(draw.randint(1, 4)):
            pickled[draw.randrange(len(pickled))] = draw.randrange(256)
        path = Path(tmp_path) / "a.pt"
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, bytes(pickled) if member == name else content)
        try:
            wf.load(path)
        except DataError:
            continue
    assert set(os.listdir(tmp_path)) - before == {"a.pt"}
