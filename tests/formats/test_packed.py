"""Packed records equal records read one by one, also when damaged."""

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutation import ANY, mutated
from strategies import at_most

from weft.errors import DataError, WeftError
from weft.formats import tfrecord
from weft.formats.crc32c import masked_crc32c
from weft.formats.example import decode, encode
from weft.formats.example_batch import ExampleParser
from weft.formats.example_spec import FixedLenFeature
from weft.formats.packed import Packed
from weft.formats.record_block import Block
from weft.formats.tfrecord import RecordReader, framed


def one_by_one(raw):
    """Whole records at the front, up to the first that is damaged."""
    found, place = [], 0
    while place + 12 <= len(raw):
        length, check = struct.unpack_from("<QI", raw, place)
        end = place + 12 + length
        if end + 4 > len(raw) or masked_crc32c(raw[place : place + 8]) != check:
            break
        if masked_crc32c(raw[place + 12 : end]) != struct.unpack_from("<I", raw, end)[0]:
            break
        found.append(bytes(raw[place + 12 : end]))
        place = end + 4
    return found


def block(raw):
    return Block(np.frombuffer(bytearray(raw), np.uint8))


RUNS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), max_size=8)


@at_most(60)
@given(RUNS, st.integers(0, 20), st.data())
def test_blocks_of_runs_of_lengths(runs, cut, data):
    draw = random.Random(0)
    records = [draw.randbytes(length) for length, count in runs for _ in range(count)]
    raw = b"".join(map(framed, records))
    raw = raw[: max(len(raw) - cut, 0)]
    expected = one_by_one(raw)
    found = block(raw)
    assert found.packed(0, len(records)).tolist() == expected
    first = data.draw(st.integers(0, len(expected)))
    some = found.packed(first, 5)
    assert some.tolist() == list(some) == expected[first : first + 5]
    assert [found.record(i) for i in range(found.good)] == expected
    halves = Packed.joined([found.packed(0, first), found.packed(first, len(expected))])
    assert halves.tolist() == expected
    for length, rows in halves.by_length():
        same = [record for record in expected if len(record) == length]
        assert [row.tobytes() for row in halves.rows(rows, length)] == same


def test_blocks_end_before_damage():
    draw = random.Random(1)
    records = [bytes(draw.randbytes(20 if n % 50 else 21)) for n in range(120)]
    whole = b"".join(map(framed, records))
    shorter = 0
    for seed in range(400):
        raw = mutated(whole, random.Random(seed), ANY)
        expected = one_by_one(raw)
        assert block(raw).packed(0, len(records)).tolist() == expected
        shorter += len(expected) < len(records)
    assert shorter > 300


@pytest.mark.parametrize("size", [64, 1000, 1 << 20])
def test_reads_across_blocks(tmp_path, monkeypatch, size):
    monkeypatch.setattr(tfrecord, "PIECE", size)
    draw = random.Random(2)
    records = [draw.randbytes(30 if n < 90 else draw.randrange(90)) for n in range(150)]
    path = tmp_path / "a"
    path.write_bytes(b"".join(map(framed, records)))
    reader, found, offset = RecordReader(path), [], 0
    while len(part := reader.read(draw.randrange(1, 40))):
        found += part.tolist()
        offset += sum(len(record) + 16 for record in part)
        assert reader.offset == offset
        if len(found) < len(records):
            found.append(next(reader))
            offset = reader.offset
    assert found == records


NUMBERS = {"x": FixedLenFeature([3], "float32"), "n": FixedLenFeature([2], "int64")}


def test_examples_in_a_file_are_parsed_where_they_lie(tmp_path):
    whole = [encode({"x": [seed, 1.5, 2], "n": [seed, -seed]}) for seed in range(40)]
    path = tmp_path / "a"
    parse = ExampleParser(NUMBERS)
    refused = 0
    for seed in range(300):
        broken = mutated(whole[seed % 40], random.Random(seed), ANY)
        path.write_bytes(b"".join(map(framed, [*whole[:20], broken, *whole[20:]])))
        with RecordReader(path) as reader:
            records = reader.read(100)
        try:
            alone = ExampleParser(NUMBERS)([broken])
        except WeftError:
            refused += 1
            with pytest.raises(DataError, match="record 20: "):
                parse(records)
            continue
        found = parse(records)
        expected = [decode(record) for record in whole]
        np.testing.assert_array_equal(found["x"][20], alone["x"][0])
        np.testing.assert_array_equal(np.delete(found["x"], 20, 0), [e["x"] for e in expected])
        np.testing.assert_array_equal(found["n"][20], alone["n"][0])
        np.testing.assert_array_equal(np.delete(found["n"], 20, 0), [e["n"] for e in expected])
    assert 30 < refused < 300


def test_what_was_parsed_has_memory_of_its_own():
    records = Packed.of([encode({"x": [1.0, 2, 3], "n": [1, 2]})] * 2)
    parse = ExampleParser(NUMBERS)
    parse(records)
    for some in (records, records[:1]):
        found = parse(some)
        assert not np.shares_memory(found["x"], records.raw)
        assert found["x"].flags.writeable and found["x"].flags.aligned
