"""The protobuf wire format round-trips; errors name the position of damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import ArgumentError, DataError
from weft.formats import wire

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(INTEGERS))
def test_integers_round_trip(values):
    raw = b"".join([wire.varint(v) for v in values])
    assert wire.varints(np.array(values, np.int64)) == raw
    assert wire.unpacked_varints(raw).tolist() == values


@given(st.integers(1, wire.LARGEST_NUMBER), INTEGERS, st.text(), st.floats(width=32))
def test_fields_round_trip(number, value, text, real):
    message = wire.integer(number, value) + wire.delimited(number, text)
    message += wire.float32(number, real) + wire.float64(number, real)
    message += wire.fixed32(number, 7) + wire.fixed64(number, 8)
    found = list(wire.fields(message))
    assert {f.number for f in found} == {number}
    assert wire.signed(found[0].value) == value
    assert wire.text(found[1], "message") == text
    np.testing.assert_equal([wire.number(f, "message") for f in found[2:4]], [real, real])
    assert [f.value for f in found[4:]] == [7, 8]
    assert message[found[1].offset :].startswith(text.encode())


def test_arrays_take_the_bytes_that_their_types_have():
    assert wire.packed(1, np.ones(3, np.float32)) == wire.delimited(1, np.ones(3, "<f4").data)
    assert wire.packed(1, [0.5]) == wire.delimited(1, np.array([0.5], "<f8").data)
    assert wire.packed(1, np.array([-1])) == wire.delimited(1, b"\xff" * 9 + b"\x01")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\x08", "damaged at byte 101: a truncated integer"),
        (b"\x08" + b"\xff" * 10, "damaged at byte 101: a truncated integer"),
        (b"\x08\x01\x12\x05abc", "damaged at byte 104: expected 5 bytes, got 3"),
        (b"\x0d\x00", "damaged at byte 101: expected 4 bytes, got 1"),
        (b"\x0b", "damaged at byte 100: a field of kind 3"),
        (b"\x00\x00", "damaged at byte 100: a field numbered 0"),
    ],
)
def test_damage_is_reported_with_its_place(raw, said):
    with pytest.raises(DataError, match=said):
        list(wire.fields(raw, 100, "event"))


def test_an_array_of_integers_that_is_damaged():
    for raw in (b"\x80", b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"):
        with pytest.raises(DataError, match=r"a truncated integer|an integer of over 64 bits"):
            wire.unpacked_varints(raw)
    with pytest.raises(ArgumentError, match="64 bits"):
        wire.varint(1 << 64)


def test_a_value_of_another_kind_raises():
    (field,) = wire.fields(wire.integer(3, 1))
    with pytest.raises(DataError, match="field 3: expected kind 2, got 0"):
        wire.text(field, "event")
    (field,) = wire.fields(wire.delimited(3, b"\xff"))
    with pytest.raises(DataError, match="field 3 is not UTF-8"):
        wire.text(field, "event")
