"""`Saver`: saved variables are restored, and nothing else changes."""

import contextlib
import itertools
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors
from weft.tf1.train import saver as saver_module


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
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoint", "model.ckpt-7.meta", "model.ckpt-7.safetensors"
    ]  # fmt: skip
    with tf.Session() as sess:
        saver.restore(sess, path)  # no initializer needed
        found = sess.run([a, b, step])
        assert found[0].tolist() == [[5.0, 6.0]] and found[1] == 3.0 and found[2] == 0
        assert found[1].dtype == ml_dtypes.bfloat16


def test_training_continues_where_it_was(tmp_path):
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


def test_errors(tmp_path):
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
    saver = tf.train.Saver()
    assert saver.save(session, tmp_path / "made" / "m").endswith("/made/m")
    with pytest.raises(ValueError, match=r"Saver: expected a folder at .*/no/ne to save .*/ne/m"):
        saver.save(session, tmp_path / "no" / "ne" / "m")


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
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="'flipped' do not match their checksum"
        ):
            saver.restore(session, path)


def numbers(folder):
    return sorted(int(p.stem.split("-")[1]) for p in folder.glob("m-*.safetensors"))


def restarted(path, steps, max_to_keep=3, **given):
    """Another process's saver, as a new one knows nothing of what was saved before."""
    saver = tf.train.Saver(max_to_keep=max_to_keep)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in steps:
            saver.save(sess, str(path), step, **given)
    return saver


def test_a_restarted_saver_manages_what_it_finds(tmp_path):
    tf.Variable(1.0)
    restarted(tmp_path / "m", range(5))
    assert numbers(tmp_path) == [2, 3, 4]
    saver = restarted(tmp_path / "m", [5])
    assert numbers(tmp_path) == [3, 4, 5]
    expected = [str(tmp_path / f"m-{i}") for i in (3, 4, 5)]
    assert saver.last_checkpoints == expected
    assert tf.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths == expected
    restarted(tmp_path / "m", [5, 6], max_to_keep=1)  # the same step again
    assert numbers(tmp_path) == [6]


def test_a_saver_leaves_files_of_other_names_alone(tmp_path):
    tf.Variable(1.0)
    restarted(tmp_path / "best", [1, 2])
    restarted(tmp_path / "best-m", [1, 2])
    (tmp_path / "m-77.safetensors").write_bytes(b"the user's own")
    restarted(tmp_path / "m", range(4), max_to_keep=1)
    assert numbers(tmp_path) == [3, 77]
    assert len(list(tmp_path.glob("best*.safetensors"))) == 4


def test_savers_get_what_to_manage(tmp_path):
    tf.Variable(1.0)
    restarted(tmp_path / "m", range(3))
    paths = [str(tmp_path / f"m-{i}") for i in range(3)]
    saver = tf.train.Saver(max_to_keep=2)
    saver.recover_last_checkpoints([paths[0], str(tmp_path / "gone"), paths[1]])
    assert saver.last_checkpoints == paths[:2]
    saver.set_last_checkpoints(paths[1:2])
    assert saver.last_checkpoints == paths[1:2]
    (tmp_path / "checkpoint").unlink()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in (7, 8):
            saver.save(sess, str(tmp_path / "m"), step)
    assert numbers(tmp_path) == [0, 2, 7, 8]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\n", b'model_checkpoint_path: "\xff"\n', b"}"])
def test_a_state_file_that_makes_no_sense_is_replaced(tmp_path, content):
    tf.Variable(1.0)
    (tmp_path / "checkpoint").write_bytes(content)
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    restarted(tmp_path / "m", [1])
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "m-1")


def test_relative_paths_are_relative_to_the_folder(tmp_path, monkeypatch):
    tf.Variable(1.0)
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    restarted("runs/m", [1, 2])
    assert tf.train.latest_checkpoint("runs") == "runs/m-2"
    monkeypatch.chdir(tmp_path / "runs")
    assert tf.train.latest_checkpoint(".") == "./m-2"
    restarted("m", [3, 4])
    assert numbers(tmp_path / "runs") == [2, 3, 4]


KILLED = """
import sys
import weft.tf1 as tf
tf.Variable([1.0])
saver = tf.train.Saver(max_to_keep=3)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    step = int(sys.argv[2])
    print("ready", flush=True)
    while True:
        saver.save(sess, sys.argv[1], step)
        step += 1
"""


@pytest.mark.slow
def test_savers_that_are_killed_leave_a_bounded_folder_and_a_latest_checkpoint(tmp_path):
    v = tf.Variable([1.0])
    root, folder = Path(__file__).resolve().parents[2], tmp_path / "run"
    folder.mkdir()
    for turn in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder / "m"), str(turn * 1000)],
            stdout=subprocess.PIPE, cwd=root,
        )  # fmt: skip
        process.stdout.readline()
        time.sleep(0.05 * turn)
        process.kill()
        process.communicate()
        latest = tf.train.latest_checkpoint(str(folder))
        assert turn < 2 or latest is not None
        if latest is not None:
            with tf.Session() as sess:
                tf.train.Saver([v]).restore(sess, latest)
        assert len(numbers(folder)) <= 4  # the new one is there before the oldest goes
    restarted(folder / "m", [9000])
    assert len(numbers(folder)) == 3
    saved, graphs = ({p.stem for p in folder.glob(f"*.{end}")} for end in ("safetensors", "meta"))
    assert len(saved) == 3 and graphs <= saved  # a kill may come before a graph is written


def test_the_state_file_is_right_wherever_a_save_is_cut_off(tmp_path, monkeypatch):
    """After each operation, the latest checkpoint exists, and every existing one is listed."""
    tf.Variable(1.0)
    for keep, cut in itertools.product((1, 2), range(8)):
        folder = tmp_path / f"{keep}-{cut}"
        folder.mkdir()
        restarted(folder / "m", [1, 2], keep)
        deeds = itertools.count()

        def cut_off(deed, deeds=deeds, cut=cut):
            def count(*args, **given):
                if next(deeds) == cut:
                    raise KeyboardInterrupt
                return deed(*args, **given)

            return count

        with monkeypatch.context() as patch:
            for owner, name in ((saver_module, "write_state"), (saver_module, "write_arrays")):
                patch.setattr(owner, name, cut_off(getattr(owner, name)))
            patch.setattr(Path, "unlink", cut_off(Path.unlink))
            with contextlib.suppress(KeyboardInterrupt):
                restarted(folder / "m", [3], keep)
        assert tf.train.latest_checkpoint(str(folder)) is not None
        assert len(numbers(folder)) <= keep + 1
        restarted(folder / "m", [4], keep)
        assert len(numbers(folder)) == keep


def test_errors_of_distant_variables_are_tensorflows(tmp_path, monkeypatch):
    """As sessions that recover expect them."""

    def gone(*_):
        raise errors.UnavailableError("/job:ps/task:1: has ended")

    tf.Variable([1.0])
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        for name in ("values_of", "set_values"):
            monkeypatch.setattr(saver_module, name, gone)
        for call in (lambda: saver.save(session, path), lambda: saver.restore(session, path)):
            with pytest.raises(tf.errors.UnavailableError, match="task:1"):
                call()
