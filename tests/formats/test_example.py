"""Examples round-trip singly and in batches, in every layout."""

import random

import numpy as np
import pytest
from mutation import ANY, mutated

from weft.errors import DataError, DTypeError, WeftError
from weft.formats import wire
from weft.formats.example import decode, decode_sequence, encode, encode_sequence
from weft.formats.example_batch import ExampleParser
from weft.formats.example_spec import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    Ragged,
    RawFeature,
    VarLenFeature,
)


def some(seed, same=True):
    draw = np.random.default_rng(seed)
    words = ["one", "two", "six"] if same else ["", "a longer one", "six"]
    return {
        "x": draw.standard_normal((2, 3)).astype(np.float32),
        "label": int(draw.integers(0, 10)),
        "ids": draw.integers(-5 if not same else 128, 16000, 3 if same else seed % 5),
        "word": words[seed % 3],
        "image": draw.integers(0, 256, (2, 2), np.uint8).tobytes(),
        "rest": [1.0] * (0 if same else seed % 3),
    }


EXPECTED = {
    "x": FixedLenFeature([2, 3], "float32"),
    "label": FixedLenFeature([], np.int64),
    "ids": VarLenFeature("int64"),
    "steps": FixedLenSequenceFeature([], "int64", allow_missing=True, default_value=-1),
    "word": FixedLenFeature([], bytes),
    "image": RawFeature([2, 2], np.uint8),
    "gone": FixedLenFeature([2], "string", default_value="no"),
}


def test_an_example_round_trips():
    found = decode(encode({"a": [1, -300], "b": "xy", "c": 0.5, "d": [b"x\0"], "e": True}))
    assert {k: list(v) for k, v in found.items()} == {
        "a": [1, -300], "b": [b"xy"], "c": [0.5], "d": [b"x\0"], "e": [1],
    }  # fmt: skip
    assert found["a"].dtype == np.int64 and found["c"].dtype == np.float32


def test_numbers_that_are_not_packed_and_lists_in_parts():
    ints = wire.delimited(3, wire.integer(1, 5)) + wire.delimited(3, wire.packed(1, [6, 7]))
    floats = wire.delimited(2, wire.float32(1, 0.5) + wire.float32(1, 1.5))
    entries = [
        wire.delimited(1, wire.delimited(1, name) + wire.delimited(2, feature))
        for name, feature in {"a": ints, "b": floats, "c": b""}.items()
    ]
    found = decode(wire.delimited(1, b"".join(entries)))
    assert {k: v.tolist() for k, v in found.items()} == {"a": [5, 6, 7], "b": [0.5, 1.5]}


def test_a_sequence_round_trips():
    context, lists = decode_sequence(
        encode_sequence({"id": 7}, {"words": [["a", "b"], ["c"]], "n": [[1, 2]], "none": []})
    )
    assert context["id"].tolist() == [7]
    assert lists["words"] == [[b"a", b"b"], [b"c"]] and lists["none"] == []
    assert lists["n"][0].tolist() == [1, 2]


@pytest.mark.parametrize("value", [None, [None, "a"], 1j, {"a": 1}])
def test_what_no_record_holds_raises(value):
    with pytest.raises(DTypeError, match="feature 'a': expected numbers, text or bytes"):
        encode({"a": value})


@pytest.mark.parametrize("same", [True, False])
def test_a_batch_agrees_with_its_records(same):
    whole = [some(seed, same) for seed in range(50)]
    if not same:
        for record in whole[::7]:
            record["steps"] = record["ids"]
    found = ExampleParser(EXPECTED)([encode(record) for record in whole])
    np.testing.assert_array_equal(found["x"], [record["x"] for record in whole])
    assert found["label"].tolist() == [record["label"] for record in whole]
    assert found["word"].tolist() == [record["word"].encode() for record in whole]
    images = [np.frombuffer(record["image"], np.uint8).reshape(2, 2) for record in whole]
    np.testing.assert_array_equal(found["image"], images)
    assert found["gone"].tolist() == [[b"no", b"no"]] * 50
    ids = found["ids"]
    assert isinstance(ids, Ragged)
    assert ids.lengths.tolist() == [len(record["ids"]) for record in whole]
    assert ids.values.tolist() == [i for record in whole for i in record["ids"]]
    longest = max([len(record.get("steps", [])) for record in whole])
    padded = [[*record.get("steps", []), *[-1] * longest][:longest] for record in whole]
    assert found["steps"].tolist() == padded


def test_records_of_a_known_layout_are_read_without_a_new_one():
    parse = ExampleParser(EXPECTED)
    parse([encode(some(seed)) for seed in range(4)])
    before = {length: len(known) for length, known in parse._layouts.items()}
    found = parse([encode(some(seed)) for seed in range(4, 9)])
    assert found["label"].tolist() == [some(seed)["label"] for seed in range(4, 9)]
    assert {length: len(known) for length, known in parse._layouts.items()} == before


def test_no_records_give_empty_arrays():
    found = ExampleParser(EXPECTED)([])
    assert found["x"].shape == (0, 2, 3) and len(found["ids"].values) == 0


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (FixedLenFeature([3], "int64"), "feature 'a': expected 3 values for .3,., got 2"),
        (FixedLenFeature([2], "float32"), "feature 'a': expected float32, got int64"),
        (RawFeature([2], "int32"), "feature 'a': expected bytes, got int64"),
        (FixedLenSequenceFeature([3], "int64"), "feature 'a': expected steps of 3 values, got 2"),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_another_feature_than_expected(expected, said, count):
    with pytest.raises(DataError, match="parse_example: record 0: " + said):
        ExampleParser({"a": expected})([encode({"a": [1, 2]})] * count)


def test_what_is_missing_is_reported():
    records = [encode({"a": 1}), encode({"b": 1})]
    with pytest.raises(DataError, match="record 1: feature 'a': it is missing, and has no default"):
        ExampleParser({"a": FixedLenFeature([], "int64")})(records)
    with pytest.raises(DTypeError, match="feature 'a': expected float32, int64 or bytes, got int8"):
        ExampleParser({"a": FixedLenFeature([], np.int8)})
    with pytest.raises(DTypeError, match="default_value: expected 3 values, got 2"):
        ExampleParser({"c": FixedLenFeature([3], "int64", [1, 2])})(records)
    with pytest.raises(DataError, match="expected 8 bytes for"):
        ExampleParser({"a": RawFeature([2], "int32")})([encode({"a": b"1234567"})] * 2)


def test_a_mutated_record_beside_whole_ones_changes_only_itself():
    whole = [encode(some(seed)) for seed in range(3)]
    parse = ExampleParser(EXPECTED)
    labels = parse(whole)["label"].tolist()
    for seed in range(1000):
        broken = mutated(whole[1], random.Random(seed), ANY)
        try:
            decoded = decode(broken)
            found = parse([whole[0], broken, whole[2]])
        except WeftError:
            continue
        assert found["label"].tolist() == [labels[0], decoded["label"][0], labels[2]]
        np.testing.assert_array_equal(found["x"][1].reshape(-1), decoded["x"])
