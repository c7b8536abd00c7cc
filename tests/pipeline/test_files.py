"""File sources: elements, resuming, and errors that name the damaged place."""

import gzip
import io
import random
import re
import tarfile

import numpy as np
import pytest

from weft.data import AUTOTUNE, Dataset, FixedLenFeature, ParseExample, TFRecordDataset
from weft.errors import DataError
from weft.formats import image
from weft.formats.example import encode
from weft.formats.tfrecord import RecordWriter
from weft.pipeline import Pipeline

ROWS = [f"{n},{n / 4},t{n}\n" for n in range(20)]


@pytest.fixture
def folder(tmp_path):
    for part in range(2):
        rows = ROWS[part * 10 : part * 10 + 10]
        (tmp_path / f"{part}.csv").write_text("n,x,t\n" + "".join(rows))
        (tmp_path / f"{part}.bin").write_bytes(b"HH" + bytes(range(part * 12, part * 12 + 12)))
        with gzip.open(tmp_path / f"{part}.gz", "wt") as stream:
            stream.writelines(rows)
        packed = b"HH" + bytes(range(part * 12, part * 12 + 12)) + b"F"
        (tmp_path / f"{part}.binz").write_bytes(gzip.compress(packed))
        with RecordWriter(tmp_path / f"{part}.tfrecord") as writer:
            for n in range(part * 10, part * 10 + 10):
                writer.write(encode({"n": [n], "x": [n / 4, 1.0]}))
        with tarfile.open(tmp_path / f"{part}.tar", "w") as tar:
            for n in range(part * 5, part * 5 + 5):
                for ending, data in (("cls", str(n).encode()), ("img.png", bytes([n] * 40))):
                    info = tarfile.TarInfo(f"a/{n:04}.{ending}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    return tmp_path


SOURCES = {
    "lines": lambda f: Pipeline.text_lines([f / "0.csv", f / "1.csv"]),
    "gzip": lambda f: Pipeline.text_lines(f"{f}/*.gz", "GZIP"),
    "records": lambda f: Pipeline.tfrecords(f"{f}/*.tfrecord").batch(3),
    "parallel": lambda f: Pipeline.tfrecords(f"{f}/*.tfrecord", num_parallel_reads=2),
    "chunks": lambda f: Pipeline.fixed_length_records(f"{f}/?.bin", 4, 2),
    "packed chunks": lambda f: Pipeline.fixed_length_records(f"{f}/?.binz", 4, 2, 1, "GZIP", 2),
    "csv": lambda f: Pipeline.csv(f"{f}/*.csv", [np.int32, 0.5, ""], True).shuffle(4, seed=1),
    "tar": lambda f: Pipeline.tar_shards(f"{f}/*.tar").prefetch(3),
    "names": lambda f: Pipeline.text_lines(Pipeline.list_files(f"{f}/*.csv", seed=1)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_reading_stops_and_resumes(name, folder):
    expected = [str(x) for x in SOURCES[name](folder)]
    assert len(set(expected)) == len(expected) or name in ("lines", "names")
    chance = random.Random(name)
    for _ in range(5):
        found, state = [], SOURCES[name](folder).state_dict()
        while len(found) < len(expected):
            running = iter(SOURCES[name](folder))
            running.load_state_dict(state)
            for _ in range(chance.randrange(9)):
                found += [str(x) for x in [next(running, None)] if x is not None]
            state = running.state_dict()
            running.close()
        assert found == expected


def test_what_files_give(folder):
    lines = list(SOURCES["lines"](folder))
    assert lines[:2] == ["n,x,t", "0,0.0,t0"]
    assert len(lines) == 22
    rows = list(Pipeline.csv(f"{folder}/*.csv", [np.int32, 0.5, ""], header=True))
    assert rows[7] == (7, 1.75, "t7")
    assert [type(v) for v in rows[7]] == [np.int32, np.float32, str]
    picked = Pipeline.csv(folder / "0.csv", [""], header=True, select_cols=[2])
    assert next(iter(picked)) == ("t0",)
    assert [x[0] for x in SOURCES["chunks"](folder)] == [0, 4, 8, 12, 16, 20]
    sample = list(SOURCES["tar"](folder))[6]
    assert sample == {"__key__": "a/0006", "cls": b"6", "img.png": b"\x06" * 40}


CLOSING = "line 1: expected a closing quote, got the end of the file"
QUOTES = "expected a field with quotes around all of it, or none in it"


@pytest.mark.parametrize(  # as TensorFlow 2.20's CsvDataset reads them
    ("text", "expected"),
    [
        ('1,"unclosed', CLOSING),
        ('1,"a\n2,b\n', CLOSING),
        ('1,"', CLOSING),
        ('1,x"y\n2,b\n', f"line 1: {QUOTES}, got 'x\"y"),
        ('1,"a"b\n2,b\n', f"line 1: {QUOTES}"),
        ('1, "a"\n', QUOTES),
        ("1_000,x\n", "expected int32, got '1_000'"),
        ("\u0663,x\n", "expected int32, got '\u0663'"),
        ("0x10,a\n", "expected int32"),
        ("99999999999,a\n", "expected int32"),
        ("1,a,\n", "expected 2 fields, got 3"),
        ("\n1,a\n", "line 1: expected 2 fields, got 1"),
        ('1,""\n', "field 1: expected a value, got an empty field"),
        ("1,\n", "field 1: expected a value, got an empty field"),
        ('1,"a""b"', [(1, 'a"b')]),
        ('"1","a\nb\n"\n2,","\n', [(1, "a\nb\n"), (2, ",")]),
        (" 1,a\r2 ,b\r\n+3,c", [(1, "a"), (2, "b"), (3, "c")]),
    ],
)
def test_csv_by_tensorflows_rules(text, expected, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    rows = Pipeline.csv(path, [np.int32, str])
    if not isinstance(expected, str):
        assert list(rows) == expected
        running = iter(rows)
        next(running)
        again = iter(rows)
        again.load_state_dict(running.state_dict())
        assert list(again) == expected[1:]
        return
    with pytest.raises(DataError, match=re.escape(expected)):
        list(rows)
    if QUOTES in expected and "2,b" in text:
        assert list(Pipeline.csv(path, [np.int32, str]).ignore_errors()) == [(2, "b")]


def test_csv_numbers_by_tensorflows_rules(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("nan\ninf\n 1.5 \n.5\n0x1p3\n-0x1p3\n1e400\n+2.\n\n")
    found = [row[0] for row in Pipeline.csv(path, [7.0])]
    assert str(found[0]) == "nan"
    assert found[1:] == [np.inf, 1.5, 0.5, 8, -8, np.inf, 2, 7]
    path.write_text("true\n0\nFALSE\n1\n")
    assert [row[0] for row in Pipeline.csv(path, [np.bool_])] == [True, False, False, True]
    for bad in ("1_0", "\u0663", "1d5", "- 1"):
        path.write_text(bad)
        with pytest.raises(DataError, match=re.escape(f"expected float32, got {bad!r}")):
            list(Pipeline.csv(path, [np.float32]))


@pytest.mark.parametrize("threads", [None, 2, AUTOTUNE])
def test_examples_are_parsed_before_and_after_batches(threads, folder):
    parse = ParseExample({"n": FixedLenFeature([], "int64"), "x": FixedLenFeature([2], "float32")})
    records = TFRecordDataset(f"{folder}/*.tfrecord")
    before = list(records.map(parse, threads).batch(8))
    after = list(records.batch(8).map(parse, threads))
    for batches in (before, after):
        assert [b["x"].shape for b in batches] == [(8, 2), (8, 2), (4, 2)]
        assert [n for b in batches for n in b["n"].tolist()] == list(range(20))


def test_folders_of_images(tmp_path):
    for n, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        for i in range(2):
            pixels = np.full((4 + i, 3, 3), 50 * n + i, np.uint8)
            (tmp_path / name / f"{i}.png").write_bytes(image.encode(pixels))
    found = list(Dataset.image_folder(tmp_path, num_parallel_calls=2).as_numpy_iterator())
    assert [(x.shape, int(x.max()), y) for x, y in found] == [
        ((4, 3, 3), 0, 0), ((5, 3, 3), 1, 0), ((4, 3, 3), 50, 1), ((5, 3, 3), 51, 1),
    ]  # fmt: skip
    broken = tmp_path / "cat" / "0.png"
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(DataError, match=r"cat/0.png: expected an image, got 40 bytes") as caught:
        list(Dataset.image_folder(tmp_path))
    assert "at element 0" in caught.value.__notes__[0]
    skipping = Dataset.image_folder(tmp_path).ignore_errors()
    assert len(list(skipping)) == 3
    assert skipping.skipped == 1


def test_what_is_broken_is_named_by_file_and_place(folder):
    with pytest.raises(DataError, match=r"expected files that match '.*\*.nothing', found none"):
        Pipeline.text_lines(f"{folder}/*.nothing")
    (folder / "0.csv").write_text("1,2,a\n1,x,b\n1\n")
    rows = iter(Pipeline.csv(folder / "0.csv", [np.int32, np.float32, ""]))
    next(rows)
    with pytest.raises(DataError, match=r"0.csv, line 2, field 1: expected float32, got 'x'"):
        next(rows)
    with pytest.raises(DataError, match=r"0.csv, line 3: expected 3 fields, got 1"):
        next(rows)
    (folder / "0.bin").write_bytes(b"HH12345")
    with pytest.raises(DataError, match=r"0.bin, byte 6: expected a record of 4 bytes, but 1 are"):
        list(Pipeline.fixed_length_records(folder / "0.bin", 4, 2))
    data = bytearray((folder / "0.tfrecord").read_bytes())
    data[40] ^= 1
    (folder / "0.tfrecord").write_bytes(data)
    with pytest.raises(DataError, match=r"0.tfrecord.*byte"):
        list(Pipeline.tfrecords(folder / "0.tfrecord"))
    (folder / "0.tar").write_bytes((folder / "0.tar").read_bytes()[:700])
    with pytest.raises(DataError, match=r"0.tar, .*(damaged|expected)"):
        list(Pipeline.tar_shards(folder / "0.tar"))
    with pytest.raises(DataError, match="expected a tar file"):
        list(Pipeline.tar_shards(folder / "1.csv"))
    (folder / "1.gz").write_bytes((folder / "1.gz").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"1.gz: damaged after byte"):
        list(Pipeline.text_lines(folder / "1.gz", "GZIP"))
    (folder / "1.csv").write_bytes(b"a\n\xff\xfe\n")
    with pytest.raises(DataError, match=r"1.csv, byte 2: expected utf-8"):
        list(Pipeline.text_lines(folder / "1.csv"))
