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
        "object": (b"c__builtin__\nobject\n)\x81.", "builtins.object"),
        "named": (b"cos\nsystem\n)}\x92.", "os.system"),
        "named arguments": (b"cos\nsystem\n)}K\x01K\x01s\x92.", "os.system with arguments by name"),
        "oldest object": (b"(cos\nsystem\nK\x01o.", "os.system"),
        "name": (b"cos\nsystem\n.", "os.system"),
        "name inside": (b"](cbuiltins\neval\nK\x01e.", "builtins.eval"),
        "storage": (PERSISTENT.replace(b"%c", b"\x06") + b".", "a storage; save the tensor"),
        "inst": (b"(ios\nsystem\n.", "os.system"),
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
    for member, said in (("constants.pkl", "torch.jit.save"), ("w.npy", "numpy.load")):
        with pytest.raises(DataError, match=said):
            wf.load(write(tmp_path / "other", b"N.", **{member: b""}))
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


def old_file(content: bytes, storages: bytes, keys: bytes = b"]X\x01\x00\x00\x000a.") -> bytes:
    """A file as PyTorch wrote it before version 1.6."""
    magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    machine = b"}X\x0d\x00\x00\x00little_endian\x88s."
    return b"".join([magic, b"M\xe9\x03.", machine, content, keys, storages])


def test_files_before_version_1_6(tmp_path):
    persistent = b"U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x06Nt"
    content = tensor((2, 2), (3, 1), 1).replace(
        PERSISTENT.replace(b"%c", b"\x06")[1:-1], persistent
    )
    storage = (6).to_bytes(8, "little") + np.arange(6, dtype=np.float32).tobytes()
    path = tmp_path / "a"
    path.write_bytes(whole := old_file(content, storage))
    assert wf.load(path).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    for broken, said in (
        (whole[:-1], "truncated"),
        (old_file(content, b"\x07" + storage[1:]), "damaged in storage '0'"),
        (old_file(content, storage, b"]."), "storages are not those of its tensors"),
        (old_file(content.replace(b"K\x06Nt", b"M\xff\xffNt"), storage), "a storage of 65535"),
        (old_file(b"cos\nsystem\nU\x01a\x85R.", b"", b"]."), "os.system"),
        (whole.replace(b"M\xe9\x03", b"M\xe8\x03"), "expected version 1001, got 1000"),
        (whole.replace(b"\x88s.", b"\x89s."), "not little-endian"),
    ):  # fmt: skip
        path.write_bytes(broken)
        with pytest.raises(DataError, match=said):
            wf.load(path)
    for length in range(15, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            wf.load(path)
