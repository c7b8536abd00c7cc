"""Functions whose arguments TensorFlow 2 orders or names otherwise."""

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import weft.tf1 as tf
from weft.mirror import table
from weft.mirror.mirror import found


@pytest.fixture
def version_2() -> Iterator[None]:
    table.use_tensorflow(2)
    yield
    table.use_tensorflow(1)


def test_every_row_is_of_a_function_with_these_arguments(version_2: None) -> None:
    for path, names in table.arguments_of_2().items():
        parameters = inspect.signature(inspect.unwrap(found(path))).parameters
        for new, own in names.items():
            assert own in parameters, f"{path}: {new}"
        assert [*names] != [*parameters][: len(names)]  # or the row is needless


def test_arguments_by_position_are_those_of_version_2(version_2: None) -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2]], np.float32)
    image, filters = np.ones((1, 4, 4, 3), np.float32), np.ones((3, 3, 3, 2), np.float32)
    fetches = {
        "best": found("tensorflow.nn.in_top_k")([1, 1], scores, 1),
        "named": found("tensorflow.nn.in_top_k")(predictions=scores, targets=[1, 1], k=1),
        "argmax": found("tensorflow.math.argmax")(scores, 1, tf.int32),
        "counts": found("tensorflow.math.confusion_matrix")([0, 1], [1, 1], 2, [2, 3]),
        "convolution": found("tensorflow.nn.convolution")(image, filters, [2, 2], "SAME"),
        "ones": found("tensorflow.ones_like")(input=scores),
        "loss": found("tensorflow.nn.softmax_cross_entropy_with_logits")([[0.0, 1.0]], [[1.0, 2]]),
    }
    with tf.Session() as session:
        values = session.run(fetches)
    assert values["best"].tolist() == values["named"].tolist() == [True, False]
    assert values["argmax"].dtype == np.int32 and values["argmax"].tolist() == [1, 0]
    assert values["counts"].tolist() == [[0, 2], [0, 3]]
    assert values["convolution"].shape == (1, 2, 2, 2)
    assert values["ones"].tolist() == [[1, 1], [1, 1]]
    np.testing.assert_allclose(values["loss"], 0.3132617, 1e-6)


def test_arguments_that_are_too_many_or_given_twice_raise(version_2: None) -> None:
    in_top_k = found("tensorflow.nn.in_top_k")
    with pytest.raises(TypeError, match="expected at most 4 arguments, got 5"):
        in_top_k(1, 2, 3, None, 5)
    with pytest.raises(TypeError, match="got targets twice"):
        in_top_k([1], [[0.5]], 1, targets=[1])


def test_version_1_keeps_its_order() -> None:
    assert found("tensorflow.nn.in_top_k") is tf.nn.in_top_k


def test_an_angle_has_its_arguments_names() -> None:
    with tf.Session() as session:
        found = session.run([tf.atan2(1.0, 2.0), tf.atan2(x=2.0, y=1.0)])
    np.testing.assert_allclose(found, np.arctan2(1, 2), 1e-6)
