"""Hostile files in PyTorch's format, made by hand: an error, and nothing runs."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest

import weft as wf
from weft.errors import DataError

PERSISTENT = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK%ctQ"
)


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, count: int = 6):
    """A pickle of one tensor of float32."""
    numbers = [pickle.dumps(x, 2)[2:-1] for x in (offset, shape, strides)]
    storage = PERSISTENT.replace(b"%c", bytes([count]))
    call = b"ctorch._utils\n_rebuild_tensor_v2\n("
    return b"\x80\x02" + call + storage + b"".join(numbers) + b"\x89)tR."


def write(path, data: bytes, **members: bytes):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", np.arange(6, dtype=np.float32).tobytes())
        for name, content in members.items():
            archive.writestr(f"archive/{name}", content)
    return path


def test_a_tensor_by_hand(tmp_path):
    found = wf.load(write(tmp_path / "a", tensor((2, 2), (3, 1), 1), byteorder=b"little"))
    assert found.tolist() == [[1.0, 2.0], [4.0, 5.0]]


@pytest.mark.parametrize(
    ("data", "said"),
    {
        "call": (b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", "os.system"),
        "eval": (b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.", "builtins.eval"),
        "object": (b"c__builtin__\nobject\n)\x81.", "instruction NEWOBJ"),
        "inst": (b"(ios\nsystem\n.", "instruction INST"),
        "call of no name": (b"K\x01)R.", "a call of something that is not a name"),
        "other instruction": (b"\x82\x01.", "instruction EXT1"),
        "attributes": (b"ccollections\nOrderedDict\n)R}X\x01\x00\x00\x00aK\x01sb.", "attributes"),
        "no mark": (b"t.", "no mark"),
        "mark": (b"(.", "a mark in place"),
        "end": (b"K\x01", "exhausted|truncated|got"),
        "two": (b"K\x01K\x02.", "2 values at the end"),
        "unknown": (b"\xff.", "unknown"),
        "unhashable": (b"}]K\x01s.", "unhashable"),
        "past the storage": (tensor((2, 3), (3, 2)), "storage of 6 elements"),
        "offset": (tensor((6,), (1,), 1), "storage of 6 elements"),
        "count": (tensor((6,), (1,), 0, 7), "7 elements in a storage of 24 bytes"),
        "negative": (tensor((2,), (-1,), 1), "strides"),
        "huge": (tensor((1 << 40,), (0,)), "storage of 6 elements"),
        "many": (tensor((1 << 61, 1 << 61), (0, 0)), "storage of 6 elements"),
        "unequal": (tensor((2, 2), (1,)), "argument"),
        "no storage": (tensor((1,), (1,)).replace(b"\0000X", b"\0001X"), "storage '1'"),
    }.values(),
)  # fmt: skip
def test_hostile_pickles_raise(tmp_path, data, said):
    with pytest.raises(DataError, match=said):
        wf.load(write(tmp_path / "a", data))


def test_hostile_archives_raise(tmp_path):
    path = write(tmp_path / "a", tensor((2,), (1,)), byteorder=b"big")
    with pytest.raises(DataError, match="not little-endian"):
        wf.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    with pytest.raises(DataError, match="compressed"):
        wf.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", b"")
    with pytest.raises(DataError, match=r"no data\.pkl"):
        wf.load(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match="zip file"):
        wf.load(path)


def test_doubling_references_stay_references(tmp_path):
    """Sixty pairs of the pair before: 2**60 numbers, if they were written out."""
    pairs = b"".join([b"q%ch%c\x86" % (i, i) for i in range(60)])
    found = wf.load(write(tmp_path / "a", b"\x80\x02K\x01" + pairs + b"."))
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    assert found == 1
