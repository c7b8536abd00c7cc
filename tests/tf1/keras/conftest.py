"""Every test starts with an empty graph and its own session."""

import pytest

import weft.tf1 as tf
from weft.tf1.keras.engine.sessions import forget_session
from weft.tf1.version import Behavior


@pytest.fixture(autouse=True)
def _empty_session():
    forget_session()
    tf.reset_default_graph()
    tf.set_random_seed(0)
    yield
    forget_session()


@pytest.fixture
def eager():
    """TensorFlow 2, eager from the start."""
    tf.reset_default_graph()
    tf.enable_v2_behavior()
    yield
    Behavior.is_2 = False
    tf.disable_eager_execution()
