"""The networks of `applications`: parameters as Keras counts them, weights of files, inputs."""

import json

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError

APPLICATIONS = tf.keras.applications


@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("MobileNet", 475544, {"alpha": 0.25}),
        ("MobileNetV2", 1691208, {"alpha": 0.35}),
        ("ResNet50", 25636712, {}),
        ("ResNet101V2", 44675560, {}),
        ("VGG16", 14714688, {"include_top": False, "pooling": "avg"}),
        ("VGG19", 20024384, {"include_top": False, "pooling": "max"}),
    ],
)
def test_parameters_are_as_many_as_in_keras(name, count, options):
    model = getattr(APPLICATIONS, name)(weights=None, input_shape=(64, 64, 3), **options)
    assert model.count_params() == count


def test_weights_are_of_a_file(tmp_path):
    options = {"alpha": 0.25, "input_shape": (32, 32, 3), "classes": 3}
    path = str(tmp_path / "m.weights.h5")
    first = APPLICATIONS.MobileNet(weights=None, **options)
    first.save_weights(path)
    second = APPLICATIONS.MobileNet(weights=path, **options)
    images = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3))
    given = APPLICATIONS.mobilenet.preprocess_input(images)
    assert given.min() >= -1 and given.max() <= 1
    assert np.array_equal(first.predict(given), second.predict(given))
    with pytest.raises(ArgumentError, match="nothing is downloaded"):
        APPLICATIONS.MobileNet()


def test_inputs_of_vgg():
    found = APPLICATIONS.vgg16.preprocess_input(np.array([[[[1, 2, 3]]]]))
    assert np.allclose(found, [[[[3 - 103.939, 2 - 116.779, 1 - 123.68]]]])


def test_likeliest_classes_have_the_names_of_keras_file(tmp_path, monkeypatch):
    decode = APPLICATIONS.vgg16.decode_predictions
    rows = np.zeros((2, 1000), np.float32)
    rows[0, 7], rows[0, 3], rows[1, 999] = 0.5, 0.25, 1.0
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(ArgumentError, match="list of classes"):
        decode(rows)
    (tmp_path / "models").mkdir()
    names = {str(i): [f"n{i}", f"class {i}"] for i in range(1000)}
    (tmp_path / "models" / "imagenet_class_index.json").write_text(json.dumps(names))
    first, second = decode(rows, top=2)
    assert first == [("n7", "class 7", 0.5), ("n3", "class 3", 0.25)]
    assert second[0] == ("n999", "class 999", 1.0)
    with pytest.raises(ShapeError, match="1000"):
        decode(rows[:, :10])
