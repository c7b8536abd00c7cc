"""Checkpoints: what is saved comes back, and nothing else changes."""

import ml_dtypes
import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors


def test_save_and_restore(tmp_path):
    a = tf.Variable([[1.0, 2.0]], name="a")
    b = tf.Variable(np.array(3.0, ml_dtypes.bfloat16), name="scope/b")
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(a.assign([[5.0, 6.0]]))
        path = saver.save(sess, str(tmp_path / "model.ckpt"), global_step=7)
    assert path == str(tmp_path / "model.ckpt-7")
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "model.ckpt-7.safetensors"]
    with tf.Session() as sess:
        saver.restore(sess, path)  # no initializer needed
        found = sess.run([a, b, step])
        assert found[0].tolist() == [[5.0, 6.0]] and found[1] == 3.0 and found[2] == 0
        assert found[1].dtype == ml_dtypes.bfloat16


def test_training_goes_on_where_it_was(tmp_path):
    w = tf.Variable([1.0, -2.0])
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w))
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train)
        path = saver.save(sess, tmp_path / "m")
        sess.run(train)
        expected = sess.run(w)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        saver.restore(sess, path)
        sess.run(train)
        assert np.array_equal(sess.run(w), expected)


def test_old_checkpoints_are_removed(tmp_path):
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        paths = [saver.save(sess, str(tmp_path / "m"), i) for i in range(4)]
    assert saver.last_checkpoints == paths[2:]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[3]
    assert state.all_model_checkpoint_paths == paths[2:]
    assert [tf.train.checkpoint_exists(p) for p in paths] == [False, False, True, True]


def test_what_is_refused(tmp_path):
    with pytest.raises(errors.GraphError, match="there are none"):
        tf.train.Saver()
    a = tf.Variable([1.0, 2.0], name="a")
    saver = tf.train.Saver({"old": a})
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="'old' has no value"):
            saver.save(sess, str(tmp_path / "m"))
        sess.run(a.initializer)
        path = saver.save(sess, str(tmp_path / "m"))
        with pytest.raises(tf.errors.NotFoundError, match="no checkpoint"):
            saver.restore(sess, str(tmp_path / "nothing"))
        with pytest.raises(tf.errors.NotFoundError, match="'a' is not in"):
            tf.train.Saver([a]).restore(sess, path)
        b = tf.Variable([1.0], name="b")
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"expected float32\(1,\) for 'old'"
        ):
            tf.train.Saver({"old": b}).restore(sess, path)
        (tmp_path / "m.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0damaged!")
        with pytest.raises(tf.errors.InvalidArgumentError, match="damaged"):
            saver.restore(sess, path)
        assert sess.run(a).tolist() == [1.0, 2.0]
    assert tf.train.latest_checkpoint(str(tmp_path / "empty")) is None


def test_a_folder_that_is_missing_is_named(tmp_path, session):
    v = tf.Variable(1.0)
    session.run(v.initializer)
    with pytest.raises(ValueError, match=r"Saver: expected a folder at .*/none to save .*/none/m"):
        tf.train.Saver().save(session, tmp_path / "none" / "m")


def test_a_flipped_byte_is_found(tmp_path):
    variable = tf.get_variable("flipped", initializer=np.arange(50, dtype=np.float32))
    saver = tf.train.Saver([variable])
    with tf.Session() as session:
        session.run(variable.initializer)
        path = saver.save(session, str(tmp_path / "model"))
        file = tmp_path / "model.safetensors"
        data = bytearray(file.read_bytes())
        data[-7] ^= 1
        file.write_bytes(data)
        with pytest.raises(tf.errors.InvalidArgumentError, match="'flipped' are not those saved"):
            saver.restore(session, path)
