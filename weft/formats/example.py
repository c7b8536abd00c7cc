"""`tf.train.Example` and `SequenceExample`: named lists of bytes, floats or integers, in bytes.

    Example          features = 1
    Features         feature = 1: a map of text to Feature
    Feature          bytes_list = 1 | float_list = 2 | int64_list = 3; each has value = 1
    SequenceExample  context = 1 (Features), feature_lists = 2
    FeatureLists     feature_list = 1: a map of text to FeatureList (feature = 1, repeated)

`weft.formats.example_batch` parses many records at once, given their expected features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import DTypeError
from weft.formats import wire

BYTES: Final = 1
FLOATS: Final = 2
INTEGERS: Final = 3
KINDS: Final = {BYTES: "bytes", FLOATS: "float32", INTEGERS: "int64"}
WHAT: Final = "Example"
Value = list[bytes] | np.ndarray


class Feature(NamedTuple):
    """An undecoded feature of a record.

    Attributes:
        kind: `BYTES`, `FLOATS`, `INTEGERS`; 0 if it has no values.
        pieces: the fields that hold its values, in order.
    """

    kind: int
    pieces: list[wire.Field]


# -- to bytes


def encode(features: Mapping[str, Any]) -> bytes:
    """An `Example` of these features.

    Args:
        features: by name, a number, string or bytes, or a list or an array of them. Floats are
            stored in 32 bits, integers and booleans in 64, arrays without their shape.

    Raises:
        DTypeError: a value that is none of these.

    >>> decode(encode({"label": 3, "name": "three"}))
    {'label': array([3]), 'name': [b'three']}
    """
    return wire.delimited(1, _features(features))


def encode_sequence(
    context: Mapping[str, Any], feature_lists: Mapping[str, Iterable[Any]]
) -> bytes:
    """A `SequenceExample`: context features, and lists with a feature per step.

    >>> decode_sequence(encode_sequence({"id": 7}, {"words": [["a", "b"], ["c"]]}))
    ({'id': array([7])}, {'words': [[b'a', b'b'], [b'c']]})
    """
    lists: list[bytes] = []
    for name, steps in feature_lists.items():
        content = b"".join([wire.delimited(1, _feature(name, step)) for step in steps])
        lists.append(wire.delimited(1, wire.delimited(1, name) + wire.delimited(2, content)))
    return wire.delimited(1, _features(context)) + wire.delimited(2, b"".join(lists))


def _features(features: Mapping[str, Any]) -> bytes:
    entries: list[bytes] = []
    for name, value in features.items():
        entry = wire.delimited(1, name) + wire.delimited(2, _feature(name, value))
        entries.append(wire.delimited(1, entry))
    return b"".join(entries)


def _feature(name: str, value: Any) -> bytes:
    values = [value] if isinstance(value, bytes | str) else value
    array = np.asarray(values, object if _is_text(values) else None).reshape(-1)
    if array.dtype.kind in "OSU":
        if not all([isinstance(v, bytes | str) for v in array.tolist()]):
            raise DTypeError(
                f"{WHAT}: feature {name!r}: expected numbers, text or bytes throughout"
            )
        return wire.delimited(BYTES, b"".join([wire.delimited(1, v) for v in array.tolist()]))
    if array.dtype.kind not in "biuf":
        raise DTypeError(
            f"{WHAT}: feature {name!r}: expected numbers, text or bytes, got {array.dtype}"
        )
    if array.dtype.kind == "f":
        return wire.delimited(FLOATS, wire.packed(1, array.astype(np.float32)))
    return wire.delimited(INTEGERS, wire.packed(1, array.astype(np.int64)))


def _is_text(values: Any) -> bool:
    """Whether NumPy must not convert it: it would strip trailing zero bytes."""
    return isinstance(values, list | tuple) and any([isinstance(v, bytes | str) for v in values])


# -- and back


def decode(record: Any) -> dict[str, Value]:
    """The features of an `Example`: lists of bytes, and arrays of float32 or int64.

    A feature without values, whose type is therefore unknown, is omitted.

    Raises:
        DataError: the record is not an `Example`; the message gives the position.
    """
    return _values(features(record))


def decode_sequence(record: Any) -> tuple[dict[str, Value], dict[str, list[Value]]]:
    """The context of a `SequenceExample`, and for each list the values of its steps.

    Raises:
        DataError: the record is not a `SequenceExample`; the message gives the position.
    """
    context, lists = sequence_features(record)
    return _values(context), {name: list(map(values, steps)) for name, steps in lists.items()}


def sequence_features(record: Any) -> tuple[dict[str, Feature], dict[str, list[Feature]]]:
    """The context and the lists of a `SequenceExample`, undecoded.

    Raises:
        DataError: the record is not a `SequenceExample`; the message gives the position.
    """
    context: dict[str, Feature] = {}
    lists: dict[str, list[Feature]] = {}
    for field in wire.fields(record, 0, WHAT):
        if field.number == 1:
            context.update(_map(wire.expect(field, wire.DELIMITED, WHAT), field.offset))
        elif field.number == 2:
            for name, value in _entries(wire.expect(field, wire.DELIMITED, WHAT), field.offset):
                lists[name] = [
                    _parsed(wire.expect(step, wire.DELIMITED, WHAT), step.offset)
                    for step in wire.fields(value.value, value.offset, WHAT)
                    if step.number == 1
                ]
    return context, lists


def features(record: Any) -> dict[str, Feature]:
    """The features of an `Example`, undecoded.

    Raises:
        DataError: the record is not an `Example`; the message gives the position.
    """
    found: dict[str, Feature] = {}
    for field in wire.fields(record, 0, WHAT):
        if field.number == 1:
            found.update(_map(wire.expect(field, wire.DELIMITED, WHAT), field.offset))
    return found


def values(feature: Feature) -> Value:
    """The decoded values of a feature.

    Raises:
        DataError: its bytes are not such values.
    """
    if feature.kind == BYTES:
        return [bytes(wire.expect(piece, wire.DELIMITED, WHAT)) for piece in feature.pieces]
    if feature.kind == FLOATS:
        raw = b"".join([_floats(piece) for piece in feature.pieces])
        return np.frombuffer(raw, "<f4").astype(np.float32)
    parts = [_integers(piece) for piece in feature.pieces]
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.int64)])


def _values(found: Mapping[str, Feature]) -> dict[str, Value]:
    return {name: values(feature) for name, feature in found.items() if feature.kind}


def _floats(piece: wire.Field) -> bytes:
    if piece.kind == wire.FIXED32:
        return piece.value.to_bytes(4, "little")
    raw = wire.expect(piece, wire.DELIMITED, WHAT)
    if len(raw) % 4:
        raise wire.broken(WHAT, piece.offset, f"{len(raw)} bytes of float32")
    return bytes(raw)


def _integers(piece: wire.Field) -> np.ndarray:
    if piece.kind == wire.VARINT:
        return np.array([wire.signed(piece.value)], np.int64)
    raw = wire.expect(piece, wire.DELIMITED, WHAT)
    return wire.unpacked_varints(raw, piece.offset, WHAT)


def _map(data: memoryview, offset: int) -> dict[str, Feature]:
    return {name: _parsed(v.value, v.offset) for name, v in _entries(data, offset)}


def _entries(data: memoryview, offset: int) -> Iterator[tuple[str, wire.Field]]:
    """The entries of a map from strings to messages; of equal keys the last counts."""
    for entry in wire.fields(data, offset, WHAT):
        if entry.number != 1:
            continue
        name, value = "", wire.Field(2, wire.DELIMITED, memoryview(b""), entry.offset)
        for field in wire.fields(wire.expect(entry, wire.DELIMITED, WHAT), entry.offset, WHAT):
            if field.number == 1:
                name = wire.text(field, WHAT)
            elif field.number == 2:
                wire.expect(field, wire.DELIMITED, WHAT)
                value = field
        yield name, value


def _parsed(data: memoryview, offset: int) -> Feature:
    """Parses a feature; lists in two parts are joined, of two kinds the last counts."""
    kind, pieces = 0, list[wire.Field]()
    for field in wire.fields(data, offset, WHAT):
        if field.number not in KINDS:
            continue
        content = wire.fields(wire.expect(field, wire.DELIMITED, WHAT), field.offset, WHAT)
        if field.number != kind:
            kind, pieces = field.number, []
        pieces += [piece for piece in content if piece.number == 1]
    return Feature(kind, pieces)
