"""Records under TensorFlow's names: written, read, parsed."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import DataError

train = tf.train


def example(label, words):
    features = {
        "label": train.Feature(int64_list=train.Int64List(value=[label])),
        "words": train.Feature(bytes_list=train.BytesList(value=words)),
        "x": train.Feature(float_list=train.FloatList(value=[label / 2, 1.5])),
    }
    return train.Example(features=train.Features(feature=features))


@pytest.mark.parametrize(
    "options",
    [None, "GZIP", tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB)],
)
def test_records_written_and_parsed(tmp_path, options):
    path = tmp_path / "a"
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for label in range(4):
            writer.write(example(label, [b"w"] * label).SerializeToString())
    records = list(tf.python_io.tf_record_iterator(path, options))
    features = {
        "label": tf.FixedLenFeature([], tf.int64),
        "x": tf.FixedLenFeature([2], tf.float32),
    }
    with tf.Graph().as_default(), tf.Session() as sess:
        found = sess.run(tf.parse_example(records, features))
    assert found["label"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found["x"], [[n / 2, 1.5] for n in range(4)])


def test_examples_round_trip():
    made = example(300, [b"a", b"b"])
    back = train.Example.FromString(made.SerializeToString())
    feature = back.features.feature
    assert feature["words"].bytes_list == train.BytesList(value=[b"a", b"b"])
    assert feature["x"].WhichOneof("kind") == "float_list" and feature["x"].HasField("float_list")
    assert feature["new"].WhichOneof("kind") is None
    feature["new"].int64_list.value.extend([-1, 2])
    again = train.Example.FromString(back.SerializeToString())
    assert again.features.feature["new"].int64_list.value == [-1, 2]


def test_sequences_round_trip():
    steps = [train.Feature(int64_list=train.Int64List(value=[n])) for n in range(3)]
    made = train.SequenceExample(
        context=example(1, []).features,
        feature_lists=train.FeatureLists(feature_list={"n": train.FeatureList(feature=steps)}),
    )
    back = train.SequenceExample.FromString(made.SerializeToString())
    assert back.context.feature["label"].int64_list.value == [1]
    found = back.feature_lists.feature_list["n"].feature
    assert [f.int64_list.value for f in found] == [[0], [1], [2]]


def test_what_is_no_record():
    with pytest.raises(DataError, match="Example: damaged at byte 0"):
        train.Example.FromString(b"\xff")
