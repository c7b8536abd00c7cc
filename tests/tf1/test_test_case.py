"""`tf.test.TestCase`: what its assertions take, and what they refuse."""

import random
import unittest

import numpy as np
import pytest

import weft.tf1 as tf


class Case(tf.test.TestCase):
    __test__ = False

    def runTest(self):
        """Only its assertions are called."""


@pytest.fixture
def case():
    made = Case()
    made.setUp()
    return made


TWO = np.array([1.0, 2.0], np.float32)
OP_ERROR = tf.errors.NotFoundError(None, None, "no such file")
ASSERTIONS = {  # with arguments that are right, and such that are not
    "assertAllClose": [({"a": [1.0], "b": 2}, {"a": [1.0], "b": 2}), (TWO, TWO + 1e-3)],
    "assertAllEqual": [(TWO, [1, 2]), (TWO, TWO + 1e-6)],
    "assertNotAllClose": [(TWO, TWO + 1e-3), (TWO, TWO + 1e-7)],
    "assertAllGreater": [(TWO, 0.5), (TWO, 1)],
    "assertAllLess": [(TWO, 2.5), (TWO, 2)],
    "assertNear": [(1.0, 1.1, 0.2), (1.0, 1.1, 0.05)],
    "assertArrayNear": [(TWO, [1.1, 2.1], 0.2), (TWO, [1.0, 2.1], 0.05)],
}


@pytest.mark.parametrize("name", ASSERTIONS)
def test_assertions_of_arrays(case, name):
    right, wrong = ASSERTIONS[name]
    getattr(case, name)(*right)
    with pytest.raises(AssertionError):
        getattr(case, name)(*wrong)


def test_shapes_and_tensors(case):
    x = tf.constant(TWO)
    case.assertShapeEqual(TWO, x)
    with pytest.raises(AssertionError):
        case.assertShapeEqual(TWO[:1], x)
    with case.cached_session():
        case.assertAllEqual(x + 1.0, [2, 3])
    with case.test_session() as session:
        assert session.run(x).tolist() == [1, 2]


def test_a_session_is_no_test():
    found = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(found)
    assert found.wasSuccessful() and [text for _, text in found.skipped] == ["not a test"]


@pytest.mark.parametrize("wanted", ["no such", lambda error: error.message == "no such file"])
def test_errors_of_operations(case, wanted):
    with case.assertRaisesOpError(wanted):
        raise OP_ERROR
    with pytest.raises(AssertionError), case.assertRaisesOpError(wanted):
        raise tf.errors.NotFoundError(None, None, "another")
    with pytest.raises(AssertionError), case.assertRaisesOpError(wanted):
        pass


def test_every_test_begins_in_the_same_state(case):
    def drawn():
        case.setUp()
        with tf.Session() as session:
            value = float(session.run(tf.random_normal([])))
        return (
            random.random(),
            np.random.rand(),
            value,
            len(tf.get_default_graph().get_operations()),
        )

    assert drawn() == drawn()
