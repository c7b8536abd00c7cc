"""Parquet files: random access over row groups and files, and errors that name both."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft.data import Dataset, ParquetDataset
from weft.errors import ArgumentError, DataError, ShapeError
from weft.pipeline import Pipeline
from weft.pipeline.file.parquet import Groups

SIZES = [13, 0, 9]


def write(path, start, count, group=4, **more):
    numbers = range(start, start + count)
    columns = {
        "n": pa.array(numbers, pa.int32()),
        "x": pa.array([n / 4 for n in numbers], pa.float64()),
        "t": pa.array([f"t{n}" for n in numbers], pa.string()),
        "pair": pa.array([[n, -n] for n in numbers], pa.list_(pa.float32(), 2)),
        "some": pa.array([list(range(n % 3)) for n in numbers], pa.list_(pa.int64())),
        "both": pa.StructArray.from_arrays([pa.array(numbers, pa.int64())], ["a"]),
        "kind": pa.array([str(n % 2) for n in numbers], pa.string()).dictionary_encode(),
        "price": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(9, 2)),
    }
    pq.write_table(
        pa.table({**columns, **more}), path, row_group_size=group, write_page_checksum=True
    )


@pytest.fixture
def folder(tmp_path):
    start = 0
    for part, size in enumerate(SIZES):
        write(tmp_path / f"{part}.parquet", start, size)
        start += size
    return tmp_path


def test_rows_of_all_kinds(folder):
    dataset = Dataset.parquet(folder)
    assert len(dataset) == sum(SIZES)
    row = list(dataset.as_numpy_iterator())[17]
    assert row["n"] == 17
    assert row["n"].dtype == np.int32
    assert (row["x"], row["t"], row["kind"], row["price"]) == (4.25, "t17", "1", Decimal("4.25"))
    assert row["pair"].tolist() == [17, -17]
    assert row["some"].tolist() == [0, 1]
    assert row["both"] == {"a": 17}
    with pytest.raises(ValueError, match="read-only"):
        row["pair"][0] = 1


@at_most(25)
@given(st.integers(1, 30), st.integers(1, 7), st.integers(1, 9), st.integers(0, 5000))
def test_batches_are_stacked_rows_whatever_is_kept(tmp_path_factory, count, group, size, kept):
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    write(path, 0, count, group)
    rows = Pipeline.parquet([path, path], ["n", "pair", "both", "t"], kept_bytes=kept)
    rows = rows.shuffle(1, seed=3)
    found = [n for batch in rows.batch(size) for n in batch["n"].tolist()]
    assert found == [int(row["n"]) for row in rows] == [int(t[1:]) for t in _texts(rows)]
    assert sorted(found) == sorted([*range(count), *range(count)])


def _texts(rows):
    second = rows.as_numpy_iterator()  # the third epoch
    second.load_state_dict({**second.state_dict(), "epoch": 0})
    return [row["t"] for row in second]


PIPELINES = {
    "rows": lambda f: ParquetDataset(f, ["n"]).shuffle(1, seed=1).batch(3).prefetch(2),
    "groups": lambda f: (
        Dataset.parquet(f, ["n"], row_groups=True).shuffle(1, seed=1).unbatch().shuffle(5, seed=2)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_reading_stops_and_resumes(name, folder):
    expected = [str(x) for x in PIPELINES[name](folder)]
    chance, found = random.Random(name), []
    state = PIPELINES[name](folder).state_dict()
    while len(found) < len(expected):
        running = iter(PIPELINES[name](folder))
        running.load_state_dict(state)
        for _ in range(chance.randrange(5)):
            found += [str(x) for x in [next(running, None)] if x is not None]
        state = running.state_dict()
        running.close()
    assert found == expected


def test_little_is_read_and_little_is_kept(folder, monkeypatch):
    groups = Groups([str(folder / "0.parquet"), str(folder / "2.parquet")], ["x"], kept_bytes=70)
    reads = []
    for file in groups.files:
        real = file.read
        monkeypatch.setattr(file, "read", lambda g, real=real: reads.append(g) or real(g))
    for number in (0, 1, 0, 2, 1, 0, 2, 6):  # two groups of 32 bytes fit
        groups.columns(number)
    assert reads == [0, 1, 2, 1, 0, 2, 2]  # the third is found; the last is of the second file


def test_empty_values(folder):
    gaps = {"x": pa.array([0.5, None]), "t": pa.array(["a", None]), "n": pa.array([None, 7])}
    write(folder / "a.parquet", 0, 2, **gaps)
    with pytest.raises(DataError, match=r"a.parquet, row group 0, column 'n': .* 1 empty ones of"):
        list(Pipeline.parquet(folder / "a.parquet"))
    first, second = Pipeline.parquet(folder / "a.parquet", ["n", "x", "t"], {"n": -1})
    assert (first["n"], first["x"], second["t"]) == (-1, 0.5, None)
    assert np.isnan(second["x"])
    with pytest.raises(ArgumentError, match="expected a default that fits int64, got 'b'"):
        list(Pipeline.parquet(folder / "a.parquet", ["n"], {"n": "b"}))


def test_what_is_broken_is_named_by_file_and_row_group(folder, tmp_path_factory):
    with pytest.raises(DataError, match=r"0.parquet: expected a column 'm', got columns \['n', "):
        Pipeline.parquet(folder, ["m"])
    with pytest.raises(ShapeError, match=r"element\['some'\] of shape .* padded_batch takes other"):
        list(Pipeline.parquet(folder, ["some"]).batch(4))
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(DataError, match=r"expected files \*.parquet in .*empty"):
        Pipeline.parquet(empty)
    pq.write_table(pa.table({"n": ["a"]}), folder / "3.parquet")
    with pytest.raises(DataError, match=r"3.parquet: .* 'n' of type int32 as in .*0.parquet, got"):
        Pipeline.parquet(folder, ["n"])
    path = folder / "0.parquet"
    raw = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    raw[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(raw)
    rows = Pipeline.parquet(path, ["x"])
    with pytest.raises(DataError, match=r"0.parquet, row group 1: damaged"):
        list(rows)
    skipping = rows.ignore_errors()
    assert len(list(skipping)) == 9
    assert skipping.skipped == 4
    path.write_bytes(raw[:-9])
    with pytest.raises(DataError, match=r"0.parquet: expected a Parquet file"):
        Pipeline.parquet(path)
