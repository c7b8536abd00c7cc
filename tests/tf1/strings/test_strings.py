"""Texts in graphs; the expected values are TensorFlow's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, GraphError, ShapeError
from weft.formats import text_hash

TEXTS = [bytes(range(n)) for n in (0, 3, 6, 12, 16, 27, 45, 64, 65, 200)]
FAST = [
    1936946117179621455, 1486536572171691162, 1368457501603406643, 2293984998287228285,
    1080060857502750420, 179666517253298678, 1548782784575706027, 3856493858525203531,
    478270155923209662, 525935771297148851,
]  # fmt: skip
OLD = [
    105434511174508091, 3149149548962779049, 1510994284028697529, 2278262293451471072,
    2600588123549868653, 908237375255278812, 4372260775181217407, 2192457456962414804,
    2525959834624391444, 4185538572715980330,
]  # fmt: skip
STRONG = [
    443797209252341627, 4206073253662418649, 1092176641411604469, 1288037760500110323,
    1839200746584756174, 235296783608942183, 535090664918289992, 3342862793305436196,
    3209810203499148325, 4118523408214967998,
]  # fmt: skip


def value(tensor, feed=None):
    with tf.Session(graph=tensor.graph) as session:
        found = session.run(tensor, feed)
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_buckets():
    assert value(tf.string_to_hash_bucket_fast(TEXTS, 2**62)) == FAST
    assert value(tf.string_to_hash_bucket(TEXTS, 2**62)) == OLD
    assert value(tf.string_to_hash_bucket_strong(TEXTS, 2**62, [1, 2])) == STRONG
    grid = tf.strings.to_hash_bucket_fast(np.reshape(np.array(TEXTS, object), (2, 5)), 10)
    assert grid.shape == (2, 5) and value(grid)[1][4] == FAST[9] % 10
    with pytest.raises(ArgumentError, match="expected num_buckets >= 1, got 0"):
        tf.string_to_hash_bucket_fast("a", 0)


@given(st.lists(st.binary(max_size=200), max_size=12))
@at_most(40)
def test_a_text_has_the_same_hash_alone_and_among_others(texts):
    for hashes in (
        text_hash.fingerprints,
        text_hash.murmur_hashes,
        lambda given: text_hash.sip_hashes(given, (3, 4)),
    ):
        assert hashes(texts).tolist() == [int(hashes([text])[0]) for text in texts]


@pytest.mark.parametrize(
    ("numbers", "options", "expected"),
    [
        ([1.5, 3e10, np.nan], {}, [b"1.500000", b"30000001024.000000", b"nan"]),
        ([1.5, 1e-7], {"scientific": True}, [b"1.500000e+00", b"1.000000e-07"]),
        ([-2.25, 1e10], {"shortest": True}, [b"-2.25", b"1e+10"]),
        ([1, -2], {"width": 5, "fill": "0"}, [b"00001", b"-0002"]),
        ([1, -2], {"width": 4, "fill": "-"}, [b"1   ", b"-2  "]),
        ([True, False], {"width": 6}, [b"true", b"false"]),
    ],
)
def test_numbers_as_texts(numbers, options, expected):
    assert value(tf.as_string(numbers, **options)) == expected


def test_texts_as_numbers():
    assert value(tf.string_to_number([" 3 ", "-1e3", "0x10"])) == [3, -1000, 16]
    assert value(tf.string_to_number(["3000000000"], tf.int64)) == [3000000000]
    for wrong, kind in (("a", tf.float32), ("3000000000", tf.int32), ("1_0", tf.int32)):
        expected = rf"could not correctly convert string: {wrong} .*test_strings.py:\d+"
        with pytest.raises(tf.errors.InvalidArgumentError, match=expected):
            value(tf.string_to_number(wrong, kind))


def test_joined():
    assert value(tf.string_join([["a", "b"], "-", ["x", "y"]])) == [b"a-x", b"b-y"]
    assert value(tf.constant(["a", "b"]) + "!") == [b"a!", b"b!"]
    grid = tf.constant([["a", "b"], ["c", "d"]])
    assert value(tf.reduce_join(grid, separator=".")) == b"a.b.c.d"
    assert value(tf.reduce_join(grid, [0, 1])) == b"acbd"
    assert value(tf.reduce_join(grid, 0, keep_dims=True)) == [[b"ac", b"bd"]]
    with pytest.raises(ShapeError, match=r"got \(2\) and \(3\)|got \(2,\) and \(3,\)"):
        tf.string_join([["a", "b"], ["c", "d", "e"]])


def test_split():
    parts = tf.string_split(["big world", "", "a,b "], " ,", skip_empty=False)
    with tf.Session() as session:
        found = session.run(parts)
    assert found.indices.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2]]
    assert found.values.tolist() == [b"big", b"world", b"a", b"b", b""]
    assert found.dense_shape.tolist() == [3, 3]


def test_cut_and_searched():
    x = tf.constant(["abc", "def"])
    assert value(tf.substr(x, -2, 2)) == [b"bc", b"ef"]
    assert value(tf.substr(x, [0, 1], [1, 9])) == [b"a", b"ef"]
    assert value(tf.strings.substr("h\u00e9llo", 1, 2, unit="UTF8_CHAR")) == "\u00e9l".encode()
    with pytest.raises(tf.errors.InvalidArgumentError, match="pos 4 out of range for string"):
        value(tf.substr(x, 4, 1))
    assert value(tf.regex_replace(["abab", "b"], "(a)b", r"<\1\0>")) == [b"<aab><aab>", b"b"]
    assert value(tf.regex_replace("aa", "a", "b", replace_global=False)) == b"ba"
    assert value(tf.strings.regex_full_match(["ab", "b"], "a.*")) == [True, False]
    with pytest.raises(tf.errors.InvalidArgumentError, match="invalid pattern"):
        value(tf.regex_replace("a", "(", "b"))
    assert value(tf.string_strip(" a\n")) == b"a"
    assert value(tf.strings.lower("A\u00c9", encoding="utf-8")) == "a\u00e9".encode()
    assert value(tf.strings.upper("a\u00e9")) == "A\u00e9".encode()
    assert value(tf.strings.length(["a\u00e9"], unit="UTF8_CHAR")) == [2]


def test_base64():
    assert value(tf.encode_base64(["a?>", "a"], pad=True)) == [b"YT8-", b"YQ=="]
    assert value(tf.decode_base64(["YT8-", "YQ"])) == [b"a?>", b"a"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="invalid character found in base64"):
        value(tf.decode_base64("a*"))


def test_texts_move_as_numbers_do():
    x = tf.placeholder(tf.string, [None, 2])
    moved = [
        tf.identity(x), tf.stack([x, x]), tf.concat([x, x], 0), tf.gather(x, [0]), x[0, ::-1],
        tf.transpose(x), tf.reshape(x, [-1]), tf.tile(x, [2, 1]), tf.zeros_like(x), tf.shape(x),
        tf.where(tf.equal(x, "a"), x, tf.fill(tf.shape(x), "z")), tf.not_equal(x, "a"),
    ]  # fmt: skip
    array = np.array([["a", "b"], ["c", "a"]], object)
    with tf.Session() as session:
        found = session.run(moved, {x: array})
    coded = np.array([[b"a", b"b"], [b"c", b"a"]], object)
    expected = [
        coded, np.stack([coded, coded]), np.concatenate([coded, coded]), coded[[0]],
        coded[0, ::-1], coded.T, coded.reshape(-1), np.tile(coded, [2, 1]),
        np.full((2, 2), b"", object), np.array([2, 2]),
        np.array([[b"a", b"z"], [b"z", b"a"]], object), coded != b"a",
    ]  # fmt: skip
    for y, wanted in zip(found, expected, strict=True):
        assert y.dtype == (np.int32 if wanted.dtype == np.int64 else wanted.dtype)
        np.testing.assert_array_equal(y, wanted)


def test_texts_steer_programs():
    mode = tf.placeholder(tf.string, [])
    v = tf.Variable(1.0)
    with tf.control_dependencies([mode]):
        step = tf.cond(tf.equal(mode, "train"), lambda: tf.assign_add(v, 1.0), lambda: v * 0.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert [session.run(step, {mode: m}) for m in ("train", b"eval", "train")] == [2, 0, 3]


def test_functions_of_texts():
    shout = tf.py_func(lambda x: x + b"!", [tf.constant("a")], tf.string)
    many = tf.py_func(
        lambda x: np.array([t.upper() for t in x]), [tf.constant(["a", "b"])], tf.string
    )
    assert value(shout) == b"a!" and value(many) == [b"A", b"B"]


def test_what_is_no_text():
    x = tf.placeholder(tf.string, [None], name="words")
    with tf.Session() as session:
        for wrong in ([1, 2], np.arange(3)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="words:0: expected texts"):
                session.run(x, {x: wrong})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"of shape .*\?.*, got \(\)"):
            session.run(x, {x: "a"})
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected a feed for words:0"):
            session.run(tf.identity(x))
    with pytest.raises(DTypeError, match=r"string_to_number convert texts"):
        tf.cast(x, tf.float32)
    with pytest.raises(DTypeError, match="Variable: expected numbers"):
        tf.Variable("a")
    with pytest.raises(DTypeError, match="add: expected a numeric dtype, got string"):
        tf.add(x, x)
    with pytest.raises(GraphError, match=r"branch or a loop, got .* runs on the host"):
        tf.cond(tf.constant(True), lambda: tf.string_join([x, x]), lambda: x)
