"""`wf.load` reads files of `torch.save` without running any of their pickle."""

from __future__ import annotations

import io
import os
import random
import zipfile
from argparse import Namespace
from collections import OrderedDict, defaultdict, namedtuple
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


OLD = {"_use_new_zipfile_serialization": False}


@pytest.mark.filterwarnings("ignore:Sparse CS")
@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("how", [{}, {"pickle_protocol": 5}, OLD], ids=["zip", "zip5", "old"])
def test_what_is_read_is_what_pytorch_reads(tmp_path, how):
    def again(x):
        torch.save(x, tmp_path / "a", **how)
        return wf.load(tmp_path / "a")

    z = torch.tensor([[1 + 2j, 3 - 4j]])
    for x in (z.conj(), z.mH, z.conj().imag, torch._neg_view(z.real)):
        assert again(x).tolist() == x.tolist()
    for x in (torch.nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True)):
        found = again({"x": [x, x]})["x"]
        assert found[0] is found[1] and found[0].requires_grad
        assert isinstance(found[0], wf.nn.Parameter) == isinstance(x, torch.nn.Parameter)
    assert not again(torch.nn.Parameter(torch.ones(2), requires_grad=False)).requires_grad
    eye = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    for x in (eye.to_sparse(), eye.to_sparse_csr(), eye.to_sparse_csc()):
        assert again(x).to_dense().tolist() == eye.tolist()
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.complex32):
        x = torch.tensor([1.0, 0.1, -3e-3]).to(kind)[::2]
        assert (
            again(x).tolist() == x.to(torch.complex64 if x.is_complex() else torch.float32).tolist()
        )
    values = {
        "dtype": [torch.bfloat16, torch.strided],
        2: [np.float64(1.5), np.int32(-3), np.bool_(True)],
        "arrays": [np.arange(6.0).reshape(2, 3).T, np.array(["a", "bc"]), np.zeros((0, 3), "i1")],
        "default": defaultdict(list, {1: [2]}), "namespace": Namespace(lr=0.1, path=Path("/a/b")),
        "rest": [frozenset([1]), range(3), slice(1, 2), ..., 1 << 100, "\u00e9", b"x"],
    }  # fmt: skip
    found = again(values)
    assert found["dtype"] == [wf.bfloat16, wf.strided]
    assert repr([found[k] for k in (2, "arrays", "default", "namespace", "rest")]) == repr(
        [values[k] for k in (2, "arrays", "default", "namespace", "rest")]
    )


@pytest.mark.filterwarnings("ignore:torch.quantize_per")
def test_quantized_tensors_are_the_numbers_they_stand_for(tmp_path):
    x = torch.linspace(-3, 3, 12).reshape(3, 4)
    scales, zeros = torch.tensor([0.1, 0.02, 0.3]), torch.tensor([0, 5, -3])
    for q in (
        torch.quantize_per_tensor(x, 0.1, 2, torch.quint8),
        torch.quantize_per_tensor(x, 0.01, 0, torch.qint32)[1:],
        torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8),
    ):
        torch.save(q, tmp_path / "a")
        assert wf.load(tmp_path / "a").tolist() == q.dequantize().tolist()


Pair = namedtuple("Pair", "a b")


def test_objects_and_other_formats_raise_by_name(tmp_path):
    path = tmp_path / "a.pt"
    for x, said in (
        (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
        (Pair(1, 2), "Pair; save its parts"),
        (np.array([object]), "NumPy's type object"),
        (torch.ones(2, 2, 2).to_sparse(), "not a matrix; save x.to_dense"),
        (torch.ones(2, device="meta"), "the meta device, which has no values"),
        ({"a": [int]}, r"builtins.\w+; save its name"),
        ([torch.ones(2).untyped_storage()], "a storage; save the tensor"),
        (defaultdict(Pair), "a defaultdict of .*Pair; save dict"),
    ):
        for how in ({}, OLD):
            torch.save(x, path, **how)
            with pytest.raises(DataError, match=said):
                wf.load(path)


@pytest.mark.parametrize("how", [{}, OLD], ids=["zip", "old"])
def test_damaged_files_give_what_was_saved_or_an_error(tmp_path, how):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.arange(50), "n": [1, "text"]}, path, **how)
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
            if how is not OLD:  # which has no checksums
                assert found["w"].tolist() == list(range(50)) and found["n"] == [1, "text"]
    assert seen > 120


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
