"""TFRecord files round-trip; damage raises or is skipped, and costs no memory."""

import random
import struct

import pytest
from mutation import ANY, mutated

from weft.errors import ArgumentError, ClosedError, DataError
from weft.formats.crc32c import masked_crc32c
from weft.formats.tfrecord import RecordReader, RecordWriter, framed

COMPRESSIONS = ["", "GZIP", "ZLIB"]
RECORDS = [b"", b"one", bytes(5000), random.Random(0).randbytes(3_000_000), b"last"]


def write(path, records, compression=""):
    with RecordWriter(path, compression) as file:
        for record in records:
            file.write(record)
    return path


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_round_trip(tmp_path, compression):
    path = write(tmp_path / "a", RECORDS, compression)
    assert list(RecordReader(path, compression)) == RECORDS
    with RecordReader(path, compression) as reader:
        assert [next(reader), next(reader)] == RECORDS[:2]
    assert list(reader) == []
    assert list(RecordReader(path, compression, offset=reader.offset)) == RECORDS[2:]


def test_the_bytes_are_those_of_the_format():
    length = struct.pack("<Q", 3)
    expected = length + struct.pack("<I", masked_crc32c(length))
    assert framed(b"abc") == expected + b"abc" + struct.pack("<I", masked_crc32c(b"abc"))


def test_what_was_flushed_is_there(tmp_path):
    writer = RecordWriter(tmp_path / "a", "GZIP")
    writer.write(b"one")
    writer.flush()
    reader = RecordReader(tmp_path / "a", "GZIP")
    assert next(reader) == b"one"
    with pytest.raises(DataError, match="the stream does not end"):
        next(reader)
    writer.close()
    writer.close()
    with pytest.raises(ClosedError, match="it is closed"):
        writer.write(b"two")


def test_a_damaged_record_is_reported_or_passed_over(tmp_path):
    path = write(tmp_path / "a", [b"one", b"two", b"three"])
    raw = bytearray(path.read_bytes())
    second = len(framed(b"one"))
    raw[second + 12] ^= 1
    path.write_bytes(raw)
    reader = RecordReader(path)
    assert next(reader) == b"one"
    with pytest.raises(DataError, match=f"{path}: record at byte {second} is damaged: its check"):
        next(reader)
    reader = RecordReader(path, broken="skip")
    assert (list(reader), reader.skipped) == ([b"one", b"three"], 1)
    path.write_bytes(raw[:-1])
    with pytest.raises(DataError, match="the file is truncated in it: expected 5 bytes"):
        list(RecordReader(path, offset=2 * second))
    reader = RecordReader(path, broken="skip")
    assert (list(reader), reader.skipped) == ([b"one"], 2)


def test_a_compressed_file_read_as_it_is(tmp_path):
    path = write(tmp_path / "a", [b"one"], "GZIP")
    with pytest.raises(DataError, match="the file looks compressed"):
        list(RecordReader(path))
    with pytest.raises(ArgumentError, match="expected one of '', 'GZIP', 'ZLIB', got 'LZ4'"):
        RecordReader(path, "LZ4")  # pyright: ignore


def test_a_length_that_is_wrong_allocates_nothing(tmp_path):
    length = struct.pack("<Q", 1 << 62)
    path = tmp_path / "a"
    path.write_bytes(length + struct.pack("<I", masked_crc32c(length)) + b"abc")
    with pytest.raises(DataError, match="the file is truncated in it"):
        list(RecordReader(path))


def test_a_bomb_is_read_piece_by_piece(tmp_path):
    path = write(tmp_path / "a", [bytes(1_000_000)] * 50, "ZLIB")
    assert path.stat().st_size < 200_000
    assert sum(map(len, RecordReader(path, "ZLIB"))) == 50_000_000


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_mutated_files_end_or_raise(tmp_path, compression):
    records = [bytes([n]) * n for n in range(40)]
    whole = write(tmp_path / "a", records, compression).read_bytes()
    path = tmp_path / "b"
    for seed in range(200):
        path.write_bytes(mutated(whole, random.Random(seed), ANY))
        try:
            found = list(RecordReader(path, compression))
        except DataError:
            continue
        assert all([record in records for record in found])
