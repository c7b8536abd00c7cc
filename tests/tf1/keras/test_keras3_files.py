"""Keras 3's files: one that Keras wrote is read with its optimizer, ours are read again."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DataError, StateError

# Written by Keras 3.15: Embedding with a mask, Bidirectional LSTM, a nested model with a GRU,
# BatchNormalization, a regularizer; Adam after two steps. Its predictions, and those after a step.
FILE = Path(__file__).parent / "files" / "keras3.keras"
WORDS = np.array([[1, 2, 3, 0], [4, 1, 0, 0]])
BEFORE = [[0.08783189207315445, 0.07102745026350021], [0.08788091689348221, 0.0702182948589325]]
AFTER = [[0.13157528638839722, 0.10552864521741867], [0.13349910080432892, 0.09874904900789261]]


@pytest.mark.parametrize("again", [False, True])
def test_a_model_of_keras_goes_on_where_it_was(tmp_path, again):
    model = tf.keras.models.load_model(FILE)
    if again:
        model.save(tmp_path / "m.keras")
        model = tf.keras.models.load_model(str(tmp_path / "m.keras"))
    assert np.allclose(model.predict(WORDS), BEFORE, rtol=1e-5, atol=1e-7)
    assert model.optimizer.get_weights()[0] == 2
    model.train_on_batch(WORDS, np.ones((2, 2)))
    assert np.allclose(model.predict(WORDS), AFTER, rtol=1e-4, atol=1e-6)


def test_weights_alone(tmp_path):
    model = tf.keras.models.load_model(FILE)
    expected = model.get_weights()
    path = str(tmp_path / "m.weights.h5")
    model.save_weights(path)
    model.set_weights([np.zeros_like(w) for w in expected])
    model.load_weights(path)
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), expected, strict=True))
    other = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(2,))])
    with pytest.raises(StateError, match=r"dense.*expected \[\(2, 3\), \(3,\)\], got"):
        other.load_weights(path)


def test_what_the_other_side_has_not_is_refused(tmp_path):
    lstm = tf.keras.Sequential([tf.keras.layers.LSTM(2, input_shape=(3, 2))])
    with pytest.raises(ArgumentError, match="hard_sigmoid"):
        lstm.save(tmp_path / "m.keras")
    with zipfile.ZipFile(FILE) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    text = parts["config.json"].decode().replace('"synchronized": false', '"synchronized": true')
    for changed in ({**parts, "config.json": text}, {"config.json": json.dumps({})}):
        with zipfile.ZipFile(tmp_path / "c.keras", "w") as archive:
            for name, content in changed.items():
                archive.writestr(name, content)
        with pytest.raises(DataError, match=r"synchronized=True|is missing"):
            tf.keras.models.load_model(tmp_path / "c.keras")


def test_states_of_old_optimizers():
    w = tf.Variable([1.0, 2.0])
    for make, given in (("RMSprop", [[3.0, 4.0]]), ("Adam", [7, [1.0, 2.0], [3.0, 4.0], [0.0]])):
        optimizer = getattr(tf.keras.optimizers, make)()
        optimizer.build([w])
        optimizer.set_weights([np.array(x, np.float32) for x in given])
        count, *slots = optimizer.get_weights()
        assert count == (7 if make == "Adam" else 0)
        assert slots[-1].tolist() == [3, 4]
