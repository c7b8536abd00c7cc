"""`tf.summary`: fetched summaries, and the contents of files."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.formats import wire
from weft.formats.event.picture import size_of


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def values(serialized):
    return {v.tag: v for v in tf.Summary.FromString(serialized).value}


def events(folder):
    (path,) = folder.glob("events.out.tfevents.*")
    first, *rest = tf.train.summary_iterator(str(path))
    assert first.file_version == "brain.Event:2"
    return rest


def test_tags_follow_scopes_and_families():
    x = tf.constant(2.0)
    with tf.name_scope("train"):
        a = tf.summary.scalar("loss", x)
        b = tf.summary.scalar("loss", x * 2)
        c = tf.summary.scalar("bad tag", x, family="f")
    assert (a.name, a.graph) == ("train/loss:0", tf.get_default_graph())
    with tf.Session() as sess:
        found = values(sess.run(tf.summary.merge([a, b, c])))
    tags = {"train/loss": 2.0, "train/loss_1": 4.0, "train/f/f/bad_tag": 2.0}
    assert {tag: v.simple_value for tag, v in found.items()} == tags


def test_merge_all_takes_what_is_in_the_collection():
    assert tf.summary.merge_all() is None
    x = tf.placeholder(tf.float32, [None])
    tf.summary.scalar("total", tf.reduce_sum(x))
    tf.summary.histogram("values", x)
    apart = tf.summary.scalar("apart", x[0], collections=["mine"])
    merged = tf.summary.merge_all()
    with tf.Session() as sess:
        raw, total, alone = sess.run([merged, tf.reduce_sum(x), apart], {x: [1, 2, 4]})
        assert merged.eval({x: [1, 2, 4]}) == raw
    found = values(raw)
    assert total == 7 and found["total"].simple_value == 7 and set(found) == {"total", "values"}
    histogram = found["values"].histo
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (1, 4, 3, 7)
    assert sum(histogram.bucket) == 3
    assert values(alone)["apart"].simple_value == 1


def test_images_are_scaled_as_tensorflow_scales_them(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "weft.formats.event.picture.png", lambda x: shown.append(x) or b"\x89PNG".ljust(30, b"\0")
    )
    batch = np.zeros((3, 1, 2, 1), np.float32)
    batch[0, 0, :, 0] = [0, 0.5]
    batch[1, 0, :, 0] = [-2, 1]
    batch[2, 0, :, 0] = [np.nan, 4]
    images = tf.summary.image("x", tf.constant(batch), max_outputs=3)
    one = tf.summary.image("y", tf.constant(np.array([[[[7], [9]]]], np.uint8)), max_outputs=1)
    with tf.Session() as sess:
        found = values(sess.run(images))
        assert list(values(sess.run(one))) == ["y/image"]
    assert list(found) == [f"x/image/{n}" for n in range(3)]
    assert [x.ravel().tolist() for x in shown] == [[0, 255], [1, 191], [255, 255], [7, 9]]


def test_sounds_texts_and_tensors():
    sound = tf.summary.audio("s", tf.constant([[0.0, 1.0]]), 8000, max_outputs=1)
    text = tf.summary.text("t", "some *text*")
    tensor = tf.summary.tensor_summary("n", tf.constant([[1, 2]]))
    with tf.Session() as sess:
        found = values(sess.run(tf.summary.merge([sound, text, tensor])))
    assert found["s/audio"].audio.encoded_audio_string.startswith(b"RIFF")
    assert found["t"].tensor == [b"some *text*"]
    assert found["n"].tensor.tolist() == [[1, 2]]


def test_errors():
    with tf.Session() as sess:
        with pytest.raises(tf.errors.OpError, match="'h': expected finite values, got 1 of 2"):
            sess.run(tf.summary.histogram("h", tf.constant([1.0, np.nan])))
        with pytest.raises(tf.errors.OpError, match="'s': expected one number, got shape"):
            sess.run(tf.summary.scalar("s", tf.constant([1.0, 2.0])))
        with pytest.raises(tf.errors.OpError, match="'i': expected"):
            sess.run(tf.summary.image("i", tf.constant([1.0])))
    with pytest.raises(ArgumentError, match="merge: expected summaries, got 1"):
        tf.summary.merge([1])
    with pytest.raises(ArgumentError, match="expected a string, got 1"):
        tf.summary.text("t", 1)


def test_a_file_of_a_run(tmp_path):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.name_scope("layer"):
        w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
        y = tf.matmul(x, w, name="y")
    summary = tf.summary.scalar("mean", tf.reduce_mean(y))
    with tf.Session() as sess, tf.summary.FileWriter(tmp_path, sess.graph) as writer:
        sess.run(tf.global_variables_initializer())
        for step in range(3):
            writer.add_summary(sess.run(summary, {x: [[step] * 3]}), step)
        byhand = tf.Summary()
        byhand.value.add(tag="by hand", simple_value=4)
        writer.add_summary(byhand, np.int64(7))
        writer.add_event(tf.Event(wall_time=1.5, step=9, summary=byhand))
        writer.add_run_metadata(b"times", "step 1", 1)
        writer.add_session_log(1, 2)
    graph, *rest = events(tmp_path)
    nodes = {}
    for field in wire.fields(graph.graph_def):
        if field.number == 1:
            parts = [f for f in wire.fields(field.value) if f.kind == wire.DELIMITED]
            text = [(f.number, bytes(f.value).decode("utf-8", "replace")) for f in parts]
            nodes[text[0][1]] = [t for n, t in text if n == 3]
    assert nodes["layer/y"][0] == "x" and "layer/y" in nodes["Mean"]
    assert [(e.step, e.summary.value[0].simple_value) for e in rest[:4]] == [
        (0, 0.0), (1, 3.0), (2, 6.0), (7, 4.0),
    ]  # fmt: skip
    assert (rest[4].wall_time, rest[4].step) == (1.5, 9)
    assert rest[5].tagged_run_metadata == ("step 1", b"times")


def test_writers_are_kept_by_folder(tmp_path):
    writer = tf.summary.FileWriterCache.get(tmp_path)
    assert tf.summary.FileWriterCache.get(str(tmp_path)) is writer
    assert writer.get_logdir() == str(tmp_path)
    writer.close()
    writer.reopen()
    writer.flush()
    tf.summary.FileWriterCache.clear()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_summary_round_trips():
    image = tf.Summary.Image(height=1, width=2, encoded_image_string=b"\x89PNG" + bytes(30))
    made = tf.Summary(value=[tf.Summary.Value(tag="i", image=image)])
    (value,) = tf.Summary.FromString(made.SerializeToString()).value
    assert value.WhichOneof("value") == "image" and not value.HasField("simple_value")
    assert size_of(value.image.encoded_image_string)[0] == 0


def test_a_traced_run_tells_when_its_operations_were_computed(tmp_path, graph):
    x = tf.placeholder(tf.float32, [None, 40], name="x")
    with tf.name_scope("layer"):
        w = tf.Variable(tf.ones([40, 20]), name="w")
        y = tf.nn.relu(tf.matmul(x, w, name="product"), name="act")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y, name="loss"))
    full, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path), graph) as writer:
        sess.run(tf.global_variables_initializer())
        feed = {x: np.ones((8, 40))}
        for _ in range(3):
            sess.run(step, feed)
        sess.run(step, feed, tf.RunOptions(), metadata)
        assert metadata.times == []
        plain = sess.run(y, feed)
        traced = sess.run([y, step], feed, full, metadata)
        writer.add_run_metadata(metadata, "step 4", 4)
    assert np.array_equal(traced[0], plain)
    names = {time.name for time in metadata.times}
    assert {"layer/product", "layer/act"} <= names <= {op.name for op in graph.get_operations()}
    assert all(time.duration > 0 for time in metadata.times)
    assert sum(time.size for time in metadata.times) >= 4 * 8 * 20
    (found,) = [e.tagged_run_metadata for e in events(tmp_path) if e.tagged_run_metadata]
    assert found == ("step 4", metadata.SerializeToString())
