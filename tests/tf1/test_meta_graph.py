"""Graphs in files: what was written runs again, in another graph, with the same values."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DataError, WeftError

X = np.random.default_rng(0).random((8, 5, 6)).astype(np.float32)
Y = np.arange(8) % 4


def build():
    x = tf.placeholder(tf.float32, [None, 5, 6], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    out, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(7), x, dtype=tf.float32)
    h = tf.layers.batch_normalization(tf.layers.dense(out[:, -1], 4, name="d"), training=True)
    h = tf.cond(tf.reduce_sum(h) > 0, lambda: h * 2, lambda: h - 1)
    logits = tf.identity(h, name="logits")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.01).minimize(loss, step, name="train")
    tf.py_func(lambda v: v + 1, [loss], tf.float32, name="python")
    for item in (logits, train, "text", object()):
        tf.add_to_collection("mine", item)


@pytest.mark.parametrize("scope", [None, "again"])
def test_training_continues_in_an_imported_graph(tmp_path, scope):
    with tf.Graph().as_default(), tf.Session() as session:
        build()
        session.run(tf.global_variables_initializer())
        feeds = {"x:0": X, "y:0": Y}
        session.run("train", feeds)
        path = tf.train.Saver(max_to_keep=3).save(session, str(tmp_path / "m"), 1)
        expected = [session.run(["loss:0", "train"], feeds)[0] for _ in range(3)]
        names = [v.name for v in tf.global_variables()]
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope=scope)
        start = f"{scope}/" if scope else ""
        assert [v.name for v in tf.global_variables()] == [start + name for name in names]
        saver.restore(session, path)
        logits, train, text = tf.get_collection("mine")
        assert (logits.name, text) == (f"{start}logits:0", "text")
        feeds = {f"{start}x:0": X, f"{start}y:0": Y}
        found = [session.run([f"{start}loss:0", train], feeds)[0] for _ in range(3)]
        assert found == expected
        slopes = session.run(tf.gradients(logits, tf.trainable_variables()), feeds)
        assert len(slopes) == len(tf.trainable_variables())
        session.run(tf.global_variables_initializer())
        assert session.run(tf.train.get_global_step()) == 0
        with pytest.raises(WeftError, match="calls Python"):
            session.run(f"{start}python:0", feeds)


def frozen():
    x = tf.placeholder(tf.float32, [None, 6, 6, 3], name="x")
    h = tf.layers.batch_normalization(tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu))
    y = tf.nn.softmax(tf.layers.dense(tf.layers.flatten(h), 5), name="y")
    session = tf.get_default_session()
    session.run(tf.global_variables_initializer())
    return x, y, session


def test_frozen_graphs_and_saved_models(tmp_path):
    images = X[:, :3, :3, None].repeat(2, 1).repeat(2, 2).repeat(3, 3)
    with tf.Graph().as_default() as graph, tf.Session():
        x, y, session = frozen()
        expected = session.run(y, {x: images})
        made = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        assert not [node for node in made.node if "Variable" in node.op]
        small = tf.graph_util.remove_training_nodes(made)
        assert len(small.node) < len(made.node) < len(graph.as_graph_def().node)
        path = tf.train.write_graph(small, str(tmp_path), "f.pb", as_text=False)
        tf.saved_model.simple_save(session, tmp_path / "saved", {"x": x}, {"y": y})
        with pytest.raises(ArgumentError, match="none is not in graph"):
            tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["none"])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        read = tf.GraphDef()
        with tf.gfile.GFile(path, "rb") as file:
            read.ParseFromString(file.read())
        given = tf.placeholder(tf.float32, images.shape)
        (y,) = tf.import_graph_def(read, {"x": given}, ["y:0"])
        assert y.name == "import/y:0"
        assert np.array_equal(session.run(y, {given: images}), expected)
        with pytest.raises(ArgumentError, match="input_map"):
            tf.import_graph_def(read, {"z": given})
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.load(session, ["serve"], tmp_path / "saved")
        told = found.signature_def["serving_default"]
        feeds = {told.inputs["x"].name: images}
        assert np.array_equal(session.run(told.outputs["y"].name, feeds), expected)
        assert tf.saved_model.loader.maybe_saved_model_directory(tmp_path / "saved")
        with pytest.raises(DataError, match=r"there are graphs with \[\['serve'\]\]"):
            tf.saved_model.loader.load(session, ["other"], tmp_path / "saved")


def test_graphs_of_others_and_damaged_ones_are_refused():
    with tf.Graph().as_default() as graph:
        tf.constant(np.arange(99.0), name="c")
        raw = graph.as_graph_def().SerializeToString()
    with pytest.raises(DataError, match="expected a graph that Weft wrote"):
        tf.GraphDef.FromString(graph.as_graph_def().drawn())
    for length in range(0, len(raw), 7):
        with pytest.raises(DataError):
            tf.GraphDef.FromString(raw[:length])


def test_devices_are_left_away_where_that_is_asked_for(tmp_path):
    with tf.device("/cpu:0"):
        v = tf.Variable(2.0, name="v")
        tf.multiply(v, 3.0, name="y")
    named = tf.get_default_graph().get_tensor_by_name("y:0").device
    kept, cleared = (tf.train.export_meta_graph(clear_devices=c) for c in (False, True))
    assert {node.device for node in cleared.graph_def.node} == {""}
    builder = tf.saved_model.Builder(str(tmp_path / "model"))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        builder.add_meta_graph_and_variables(session, ["serve"], clear_devices=True)
    builder.save()
    for found, device in ((kept, named), (cleared, ""), (None, "")):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            if found is None:
                tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "model"))
            else:
                tf.train.import_meta_graph(found)
                session.run(tf.global_variables_initializer())
            y = graph.get_tensor_by_name("y:0")
            assert y.device == device and session.run(y) == 6.0
