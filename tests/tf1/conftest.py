"""Every test starts with an empty default graph."""

import pytest

import weft.tf1 as tf


@pytest.fixture(autouse=True)
def _empty_graph():
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@pytest.fixture
def session():
    with tf.Session() as opened:
        yield opened
