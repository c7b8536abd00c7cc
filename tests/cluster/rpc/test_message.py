"""Messages as bytes: every type and shape, and bytes that are no message."""

import contextlib
import json
import struct

import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from strategies import at_most

from weft import errors
from weft.cluster.rpc import failure
from weft.cluster.rpc.message import HEADER, Message, decode, encode
from weft.ir.dtype import NAMED

NUMBERS = [d.numpy for d in NAMED.values()]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@st.composite
def arrays(draw):
    shape = draw(SHAPES)
    size = int(np.prod(shape))
    if draw(st.booleans()) and draw(st.booleans()):
        x = np.empty(shape, object)
        x.reshape(-1)[:] = draw(st.lists(st.binary(max_size=20), min_size=size, max_size=size))
        return x
    dtype = draw(st.sampled_from(NUMBERS))
    data = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    if dtype.kind == "b":
        data = bytes(b & 1 for b in data)
    x = np.frombuffer(data, dtype).reshape(shape)
    return x.T if draw(st.booleans()) else x


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def same(x, y):
    assert x.dtype == y.dtype
    assert x.shape == y.shape
    if x.dtype == object:
        assert x.reshape(-1).tolist() == y.reshape(-1).tolist()
    else:  # bit by bit: NaNs too
        assert x.tobytes() == y.tobytes()


@at_most(150)
@given(st.text(max_size=9), st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
       st.lists(arrays(), max_size=4))  # fmt: skip
def test_a_message_survives(kind, head, xs):
    got = decode(b"".join(encode(Message(kind, head, xs))))
    assert (got.kind, got.head) == (kind, head)
    for x, y in zip(xs, got.arrays, strict=True):
        same(x, y)
        assert not y.flags.writeable


def test_arrays_are_aligned():
    data = np.empty(4096, np.uint8)
    text = b"".join(encode(Message("a", {"b": "c" * 7}, [np.ones(3, np.uint8), np.ones(5)])))
    begin = -data.ctypes.data % 64
    data[begin : begin + len(text)] = np.frombuffer(text, np.uint8)
    got = decode(data[begin : begin + len(text)])
    assert [x.ctypes.data % 64 for x in got.arrays] == [0, 0]


@pytest.mark.parametrize(
    "x", [np.array(["a"]), np.array([1], "M8[s]"), np.array([1], np.longdouble)]
)
def test_other_types_are_refused(x):
    with pytest.raises(errors.DTypeError, match="feed: array 1: expected one of bool, int8"):
        encode(Message("feed", {}, [np.ones(1), x]))


def test_strings_must_be_bytes():
    with pytest.raises(errors.DTypeError, match="expected bytes objects, got str"):
        encode(Message("feed", {}, [np.array(["a"], object)]))


def test_a_head_must_be_json():
    with pytest.raises(errors.DataError, match="feed: the head is not JSON"):
        encode(Message("feed", {"x": np.ones(1)}))


def raw(head, body=b"", **changed):
    """A message from `[kind, head, kinds of arrays]`, or from bytes instead of both heads."""
    texts = [json.dumps(head[:2]), json.dumps(head[2])] if isinstance(head, list) else [head, b""]
    texts = [text.encode() if isinstance(text, str) else text for text in texts]
    size = HEADER.size + len(texts[0]) + len(texts[1])
    body = b"\0" * (-size % 64) + body if body else b""
    fields = {"magic": b"WEFT", "version": 1, "size": len(texts[0]), "kinds": len(texts[1]),
              "total": size + len(body), **changed}  # fmt: skip
    return HEADER.pack(*fields.values()) + b"".join(texts) + body


HOSTILE = {
    "nothing": b"",
    "a short header": b"WEFT\1",
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "another version": raw(["a", {}, []], version=2),
    "a size that lies": raw(["a", {}, []], total=1 << 40),
    "a head beyond the end": raw(["a", {}, []], size=1 << 31),
    "no json": raw(b"\xff\xfe{"),
    "deep json": raw(b"[" * 100_000),
    "no list": raw(b'{"kind": 1}'),
    "kinds that are no list": raw(["a", {}, 7]),
    "kinds that are no lists": raw(["a", {}, [7]]),
    "a kind that is no text": raw([1, {}, []]),
    "a head that is a list": raw(["a", [], []]),
    "an unknown type": raw(["a", {}, [["object", [1]]]]),
    "a type that is a list": raw(["a", {}, [[[], [1]]]]),
    "a negative size": raw(["a", {}, [["int8", [-1]]]]),
    "a huge shape": raw(["a", {}, [["int8", [1 << 40, 1 << 40]]]]),
    "a huge empty shape": raw(["a", {}, [["int8", [0, 1 << 60, 1 << 60]]]]),
    "many dimensions": raw(["a", {}, [["int8", [1] * 65]]]),
    "a fraction": raw(["a", {}, [["int8", [1.5]]]]),
    "a truth": raw(["a", {}, [["int8", [True]]]]),
    "an array that is not there": raw(["a", {}, [["int8", [100]]]]),
    "an array cut off": raw(["a", {}, [["float64", [2]]]], b"\0" * 15),
    "bytes left over": raw(["a", {}, [["int8", [1]]]], b"\0" * 2),
    "strings without lengths": raw(["a", {}, [["bytes", [2], 4]]], b"\0" * 4),
    "strings that are too long": raw(["a", {}, [["bytes", [1], 9]]], struct.pack("<Q", 99) + b"a"),
    "lengths that overflow": raw(
        ["a", {}, [["bytes", [2], 17]]], struct.pack("<QQ", (1 << 64) - 1, 2) + b"a"
    ),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_bytes_that_are_no_message(data):
    with pytest.raises(errors.DataError, match="message: "):
        decode(data)


@at_most(300)
@given(st.data())
def test_changed_bytes_never_do_worse(data):
    xs = [
        np.arange(6.0).reshape(2, 3),
        np.array([b"ab", b""], object),
        np.ones((), ml_dtypes.bfloat16),
    ]
    text = bytearray(b"".join(encode(Message("a", {"x": [1, {"y": 2}]}, xs))))
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    text = text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text
    with contextlib.suppress(errors.DataError):
        decode(bytes(text))


# -- errors


class OutsideError(Exception):
    """Not registered."""


@failure.travels
class RegisteredError(errors.WeftError):
    """Registered here."""


@pytest.mark.parametrize(
    ("error", "cls", "text"),
    [
        (errors.UninitializedError("w has no value"), errors.UninitializedError, "w has no value"),
        (ValueError("bad"), ValueError, "bad"),
        (KeyError("k"), KeyError, "'k'"),
        (RegisteredError("mine"), RegisteredError, "mine"),
        (OutsideError("odd"), errors.WeftError, "OutsideError: odd"),
        (SystemExit("no"), errors.WeftError, "SystemExit: no"),
        (FileNotFoundError(2, "none", "f"), OSError, "[Errno 2] none: 'f'"),
    ],
)
def test_errors_travel_by_class(error, cls, text):
    message = decode(b"".join(encode(failure.to_message(error))))
    got = failure.from_message(message, "/job:ps/task:0")
    assert type(got) is cls
    assert str(got) == text
    assert got.__notes__ == ["raised by /job:ps/task:0"]


def test_the_node_of_an_error_travels():
    error = errors.ShapeError("bad")
    error.node = "layer/matmul"
    assert failure.from_message(failure.to_message(error), "x").node == "layer/matmul"


@pytest.mark.parametrize("name", ["os.system", "eval", "SystemExit", "__class__", "WeftError"])
def test_only_registered_classes_are_made(name):
    message = Message(failure.KIND, {"class": name, "text": "t"})
    assert type(failure.from_message(message, "x")) is errors.WeftError
