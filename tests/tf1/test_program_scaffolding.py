"""`tf.flags`, `tf.gfile`, texts as constants: what programs have around their graph."""

from pathlib import Path

import numpy as np
import pytest

import weft.tf1 as tf
from weft.tf1.flags import DuplicateFlagError, FlagValues, IllegalFlagValueError

flags = tf.flags


def defined():
    values = FlagValues()
    flags.DEFINE_string("name", None, "A name.", flag_values=values)
    flags.DEFINE_integer("steps", 100, "Steps.", lower_bound=1, flag_values=values)
    flags.DEFINE_float("rate", 0.5, "Rate.", flag_values=values)
    flags.DEFINE_boolean("train", True, "Whether to train.", flag_values=values)
    flags.DEFINE_bool("log", False, "Whether to log.", flag_values=values)
    flags.DEFINE_list("sizes", "3,4", "Sizes.", flag_values=values)
    flags.DEFINE_enum("mode", "fast", ["fast", "slow"], "Mode.", flag_values=values)
    flags.DEFINE_multi_integer("gpu", [0], "Devices.", flag_values=values)
    return values


def test_a_command_line_sets_flags_and_leaves_the_rest():
    values = defined()
    line = "prog --name=a=b file --steps 0x20 -rate -1.5 --notrain --log --sizes=5 --mode=slow"
    left = values([*line.split(), "--gpu=1", "--gpu", "2", "-3", "--", "--name=c"])
    assert left == ["prog", "file", "-3", "--name=c"]
    assert values.flag_values_dict() == {
        "name": "a=b", "steps": 32, "rate": -1.5, "train": False, "log": True, "sizes": ["5"],
        "mode": "slow", "gpu": [1, 2],
    }  # fmt: skip
    values.steps = "7"
    assert values.steps == 7 and values["steps"].present and values["name"].default is None


def test_defaults_and_lazy_reading(monkeypatch):
    values = defined()
    monkeypatch.setattr("sys.argv", ["prog", "--rate=2", "--unknown=1"])
    assert values.rate == 2.0 and values.steps == 100 and values.sizes == ["3", "4"]
    assert sorted(values.__flags) == sorted(values)
    values.unparse_flags()
    monkeypatch.setattr("sys.argv", ["prog"])
    assert values.rate == 0.5


@pytest.mark.parametrize(
    "line, message",
    [
        ("--steps=x", "--steps=x"),
        ("--steps=0", "from 1"),
        ("--log=perhaps", "true or false"),
        ("--mode=medium", "one of fast, slow"),
        ("--name", "a value behind it"),
    ],
)
def test_values_that_do_not_fit_are_refused(line, message):
    with pytest.raises(IllegalFlagValueError, match=message):
        defined()(["prog", line])


def test_unknown_and_missing_flags():
    values = defined()
    with pytest.raises(AttributeError, match="no flag --nosteps is defined; there are name, steps"):
        values(["prog", "--nosteps"])
    assert values(["prog", "--nosteps"], known_only=True) == ["prog", "--nosteps"]
    with pytest.raises(AttributeError, match="'other'"):
        values.other
    with pytest.raises(DuplicateFlagError, match="'rate'"):
        flags.DEFINE_float("rate", 1.0, flag_values=values)
    flags.mark_flag_as_required("name", values)
    with pytest.raises(IllegalFlagValueError, match="--name"):
        values(["prog"])


def test_flags_of_older_programs(monkeypatch):
    values = defined()
    flags.DEFINE_multi_string("tag", ["x"], "Tags.", flag_values=values)
    flags.mark_flags_as_required(["name", "mode"], values)
    values.set_default("steps", "5")
    values.set_default("name", "n")
    assert not values.is_parsed()
    monkeypatch.setattr("sys.argv", ["prog", "--tag=a", "--tag", "b", "--mode=slow", "--other=1"])
    values._parse_flags()
    assert values.is_parsed() and values.tag == ["a", "b"]
    values.set_default("mode", "fast")
    assert (values.steps, values.name, values.mode) == (5, "n", "slow")  # one was given
    values.set_default("name", None)
    with pytest.raises(IllegalFlagValueError, match="--name"):
        values(["prog"])
    unread = defined()
    unread.mark_as_parsed()
    assert unread.rate == 0.5 and unread.is_parsed()


def test_logging(caplog):
    level = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.ERROR)
    try:
        assert tf.logging.get_verbosity() == tf.logging.ERROR
        for i in range(5):
            tf.logging.log_every_n(tf.logging.ERROR, "every %d", 2, i)
            tf.logging.log_if(tf.logging.ERROR, "if %d", i == 3, i)
        tf.logging.fatal("the end of %s", "it")
        tf.logging.warn("below")
    finally:
        tf.logging.set_verbosity(level)
    assert caplog.messages == ["every 0", "every 2", "if 3", "every 4", "the end of it"]


def test_help_and_app_run(capsys, monkeypatch):
    with pytest.raises(SystemExit, match="0"):
        defined()(["prog", "--help"])
    assert "--[no]train: Whether to train. (default: True)" in capsys.readouterr().out
    values = defined()
    monkeypatch.setattr("weft.tf1.flags.FLAGS", values)
    with pytest.raises(SystemExit, match="5"):
        tf.app.run(lambda argv: len(argv) + values.steps, ["prog", "a", "--steps=3"])


def test_files_and_folders(tmp_path):
    folder = str(tmp_path / "a" / "b")
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.MkDir(folder)
    tf.gfile.MakeDirs(folder)
    path = f"{folder}/x.txt"
    with tf.gfile.GFile(path, "w") as file:
        file.write("one\ntwo\n")
        file.flush()
        assert file.size() == 8 and file.seekable()
    with tf.gfile.FastGFile(path, "rb") as file:
        assert file.read(3) == b"one" and file.tell() == 3 and list(file) == [b"\n", b"two\n"]
    assert [line for line in tf.gfile.Open(path)] == ["one\n", "two\n"]
    tf.gfile.Copy(path, f"{folder}/y.txt")
    with pytest.raises(tf.errors.AlreadyExistsError, match="overwrite"):
        tf.gfile.Rename(path, f"{folder}/y.txt")
    tf.gfile.Rename(path, f"{folder}/y.txt", overwrite=True)
    assert tf.gfile.ListDirectory(folder) == ["y.txt"] and not tf.gfile.Exists(path)
    assert tf.gfile.Glob([f"{folder}/*.txt"]) == [f"{folder}/y.txt"]
    assert tf.gfile.Stat(f"{folder}/y.txt").length == 8 and tf.gfile.IsDirectory(folder)
    assert [w[2] for w in tf.gfile.Walk(str(tmp_path))][-1] == ["y.txt"]
    tf.gfile.Remove(f"{folder}/y.txt")
    tf.gfile.DeleteRecursively(str(tmp_path / "a"))
    assert not tf.gfile.Exists(folder)
    for wrong in (lambda: tf.gfile.GFile(path).read(), lambda: tf.gfile.ListDirectory(folder)):
        with pytest.raises(tf.errors.NotFoundError):
            wrong()


def test_texts_are_constants():
    with tf.Graph().as_default(), tf.Session() as session:
        hello = tf.constant("Hello, TensorFlow!")
        assert session.run(hello) == b"Hello, TensorFlow!" and hello.dtype is tf.string
        names = tf.convert_to_tensor(["a", "b", "c"], dtype=tf.string)
        assert session.run(names).tolist() == [b"a", b"b", b"c"] and names.shape == (3,)
        labels = tf.constant([1, 2, 3])
        rows = tf.data.Dataset.from_tensor_slices((names, labels))
        name, label = rows.make_one_shot_iterator().get_next()
        assert [session.run([name, label]) for _ in range(3)] == [[b"a", 1], [b"b", 2], [b"c", 3]]
        parts = tf.train.slice_input_producer([names, np.arange(3)], shuffle=False)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert session.run(parts) == [b"a", 0]
        coord.request_stop()
        coord.join(threads)
        with pytest.raises(TypeError, match="texts"):
            tf.constant([1, 2], dtype=tf.string)


def test_texts_and_bytes_of_both_versions_of_python():
    given = [b"\xc3\xa9", "é", bytearray(b"a")]
    assert [tf.compat.as_bytes(x) for x in given] == [b"\xc3\xa9", b"\xc3\xa9", b"a"]
    assert [tf.compat.as_str(x) for x in given[:2]] == [tf.compat.as_text(given[0]), "é"]
    assert [tf.compat.as_str_any(x) for x in (b"a", "b", 1.5)] == ["a", "b", "1.5"]
    assert tf.compat.path_to_str(Path("a")) == "a" and tf.compat.path_to_str(3) == 3
    assert isinstance(np.int8(1), tf.compat.integral_types) and tf.compat.v1 is tf
    with pytest.raises(TypeError, match="as_bytes: expected bytes or text, got 3"):
        tf.compat.as_bytes(3)
    with pytest.raises(AttributeError, match=r"weft\.tf1\.compat has no 'v2'"):
        _ = tf.compat.v2


def test_modes_of_estimators_are_texts():
    modes = tf.estimator.ModeKeys
    assert (modes.TRAIN, modes.EVAL, modes.PREDICT) == ("train", "eval", "infer")
