"""TensorFlow's checkpoint formats: read what TensorFlow wrote, write the same bytes."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest

import weft.tf1 as tf
from tests.tf1.tensorflow_files import GOLDEN, content, unpack
from weft.errors import ArgumentError, DataError, DTypeError
from weft.formats.tensorflow.bundle import Bundle, slice_key, write_bundle
from weft.formats.tensorflow.first_version import FirstVersion
from weft.formats.tensorflow.table import read_table, table_bytes

VALUES = {
    "a/w": np.array([[1.5, -2], [3, 4]], np.float32), "a/b": np.array(7),
    "half": np.array([1, 2], np.float16), "flags": np.array([True, False]),
}  # fmt: skip


def same(x, y):
    assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def test_what_is_written_is_tensorflows_to_the_byte(tmp_path):
    write_bundle(str(tmp_path / "v2"), VALUES)
    for name in ("v2.index", "v2.data-00000-of-00001"):
        assert (tmp_path / name).read_bytes() == content(name)
    with pytest.raises(DTypeError, match="a named array of numbers"):
        write_bundle(str(tmp_path / "v2"), {"": np.ones(1)})


def test_what_tensorflow_wrote_is_read(tmp_path):
    unpack(tmp_path)
    for name in ("v2", "parts", "v1"):
        reader = tf.train.load_checkpoint(str(tmp_path / name))
        for key, value in VALUES.items():
            same(reader.get_tensor(key), value)
        if name != "v2":
            same(reader.get_tensor("part/w"), np.arange(140, dtype=np.float32).reshape(70, 2))
    texts = tf.train.load_variable(str(tmp_path / "parts"), "text")
    assert texts.tolist() == [[b"a", b"bcd"], [b"", b"x" * 130]]
    named = tf.train.load_checkpoint(str(tmp_path / "v3"))
    assert named.get_tensor("model/w/.ATTRIBUTES/VARIABLE_VALUE").tolist() == [0, 1, 2, 3]
    assert isinstance(named.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"), bytes)


def test_a_checkpoint_is_looked_into(tmp_path):
    unpack(tmp_path)
    path = str(tmp_path / "v2")
    assert tf.train.list_variables(path) == [
        ("a/b", []), ("a/w", [2, 2]), ("flags", [2]), ("half", [2])
    ]  # fmt: skip
    reader = tf.train.NewCheckpointReader(path)
    assert reader.get_variable_to_dtype_map()["half"] == tf.float16
    assert reader.has_tensor("a/w") and not reader.has_tensor("w")
    assert b"a/w (float32) [2, 2]" in reader.debug_string()
    assert tf.train.load_variable(path, "a/b:0") == 7 and tf.train.checkpoint_exists(path)
    with pytest.raises(tf.errors.NotFoundError, match="'w' is not in"):
        reader.get_tensor("w")
    with pytest.raises(tf.errors.NotFoundError, match="there is no checkpoint"):
        tf.train.load_checkpoint(str(tmp_path / "other"))
    (tmp_path / "v2.data-00000-of-00001").unlink()
    with pytest.raises(tf.errors.DataLossError, match="No such file"):
        reader.get_tensor("a/w")


def test_a_saver_writes_and_restores_both_formats(tmp_path):
    unpack(tmp_path)
    w = tf.Variable(tf.zeros([2, 2]), name="a/w")
    half = tf.Variable(np.zeros(2, np.float16), name="half")
    path = str(tmp_path / "m")
    with tf.Session() as sess:
        for name in ("v2", "v1"):
            sess.run(tf.global_variables_initializer())
            tf.train.Saver().restore(sess, str(tmp_path / name))
            assert sess.run(w).tolist() == [[1.5, -2], [3, 4]]
            assert sess.run(half).tolist() == [1, 2]
        second = tf.train.Saver(max_to_keep=2, write_version=tf.train.SaverDef.V2)
        paths = [second.save(sess, path, step) for step in (1, 2, 3)]
        names = sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("m-"))
        data = ".data-00000-of-00001"
        assert names == [f"m-{i}{end}" for i in (2, 3) for end in (data, ".index", ".meta")]
        assert tf.train.latest_checkpoint(str(tmp_path)) == paths[-1]
        sess.run(w.assign(w * 2))
        tf.train.Saver().save(sess, paths[-1])  # Weft's own format under the same name
        assert not (tmp_path / "m-3.index").exists() and not (tmp_path / ("m-3" + data)).exists()
        second.restore(sess, paths[-1])
        assert sess.run(w).tolist() == [[3, -4], [6, 8]]
        second.restore(sess, paths[-2])
        assert sess.run(w).tolist() == [[1.5, -2], [3, 4]]
    with pytest.raises(ArgumentError, match=r"expected write_version SaverDef\.V2, got 1"):
        tf.train.Saver(write_version=tf.train.SaverDef.V1)


def test_every_type_and_many_names_round_trip(tmp_path):
    types = ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"]
    arrays = {t: np.arange(6).reshape(2, 3).astype(t) for t in types}
    arrays |= {"bf": np.ones(3, ml_dtypes.bfloat16), "none": np.zeros((2, 0), np.float32)}
    arrays |= {f"many/{i}/weights": np.full(i % 3, i) for i in range(9000)}  # several blocks
    arrays["\u00e4" * 100] = np.array(1.0)
    write_bundle(str(tmp_path / "a"), arrays)
    bundle = Bundle(str(tmp_path / "a"))
    assert set(bundle.entries) == set(arrays)
    for name in [n for n in arrays if not n.startswith("many") or n.endswith("7/weights")]:
        same(bundle.read(name), arrays[name])


def test_keys_of_pieces_sort_as_what_they_stand_for():
    numbers = [-(2**40), -8193, -65, -64, -1, 0, 1, 63, 64, 8191, 8192, 2**40]
    keys = [slice_key("w", ((n, 5),)) for n in numbers]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert slice_key("a\0b", ()) == b"\0a\0\xffb\0\1\0"


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_damage_is_found(tmp_path, name):
    unpack(tmp_path)
    draw, data = random.Random(0), content(name)
    prefix = str(tmp_path / name.split(".")[0])
    kind = FirstVersion if name == "v1" else Bundle
    before = {k: kind(prefix).read(k).tolist() for k in kind(prefix).entries}
    for _ in range(150):
        broken = bytearray(data)
        broken[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.2:
            del broken[draw.randrange(len(data)) :]
        (tmp_path / name).write_bytes(broken)
        try:
            store = kind(prefix)
            found = {k: store.read(k).tolist() for k in store.entries}
        except DataError:
            continue
        assert found == before  # the padding of the footer


def test_hostile_tables_raise(tmp_path):
    path = tmp_path / "a"
    for raw in (b"", bytes(48), table_bytes([(b"a", b"b")])[:-20]):
        path.write_bytes(raw)
        with pytest.raises(DataError, match="not a TensorFlow table"):
            read_table(path)
    path.write_bytes(table_bytes([]))
    assert read_table(path) == {}
    with pytest.raises(DataError, match="expected a checkpoint of TensorFlow's"):
        FirstVersion(str(path))
