"""`tf.test`: test cases with sessions, and questions about the machine."""

from __future__ import annotations

import contextlib
import math
import os
import random as python_random
import tempfile
import unittest
import unittest.mock as mock
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import weft.tf1 as tf

__all__ = [
    "Benchmark", "TestCase", "compute_gradient", "compute_gradient_error", "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda", "is_built_with_gpu_support", "is_gpu_available", "main", "mock",
    "test_src_dir_path",
]  # fmt: skip

_SEED = 1234


class TestCase(unittest.TestCase):
    """A test case with a graph and sessions of its own, and comparisons of arrays."""

    def setUp(self) -> None:
        """Clear the graph, and set all seeds."""
        python_random.seed(_SEED)
        np.random.seed(_SEED)
        tf.reset_default_graph()
        tf.set_random_seed(_SEED)

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Any]:  # fmt: skip
        """A session of a graph, the default one for `None`."""
        del use_gpu, force_gpu
        with tf.Session(graph=graph or tf.get_default_graph(), config=config) as found:
            yield found

    def test_session(self, *args: Any, **options: Any) -> Any:
        """See `session`; no test, though it is named as one."""
        if self.id().endswith(".test_session"):
            self.skipTest("not a test")
        return self.session(*args, **options)

    def cached_session(self, *args: Any, **options: Any) -> Any:
        """See `session`."""
        return self.session(*args, **options)

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or in one of its own."""
        found = tf.get_default_session()
        if found is not None:
            return found.run(tensors)
        with tf.Session() as session:
            return session.run(tensors)

    def get_temp_dir(self) -> str:
        """A folder for the test's files."""
        return tempfile.mkdtemp()

    def _array(self, value: Any) -> Any:
        return self.evaluate(value) if tf.is_tensor(value) else value

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Nested arrays, equal within |a - b| <= atol + rtol * |b|."""
        a, b = self._array(a), self._array(b)
        if isinstance(a, Mapping):
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        ragged = isinstance(a, list | tuple) and len({np.shape(x) for x in a}) > 1
        if ragged:
            self.assertEqual(len(a), len(b), msg)
            for x, y in zip(a, b, strict=True):
                self.assertAllClose(x, y, rtol, atol, msg)
            return
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol, atol, err_msg=msg or "")

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Arrays of equal shapes and elements."""
        np.testing.assert_array_equal(self._array(a), self._array(b), msg or "")

    def assertNotAllClose(self, a: Any, b: Any, **options: Any) -> None:
        """Arrays that are not close."""
        try:
            self.assertAllClose(a, b, **options)
        except AssertionError:
            return
        self.fail("The two values are close at all elements")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """All elements above a number."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """All elements below a number."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Two numbers at most `err` apart."""
        self.assertTrue(f1 == f2 or math.fabs(f1 - f2) <= err, msg or f"{f1} != {f2} +/- {err}")

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """An array with a tensor's shape."""
        self.assertEqual(list(np_array.shape), tf_tensor.shape.as_list(), msg)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float) -> None:
        """Two lists of numbers at most `err` apart."""
        self.assertEqual(len(farray1), len(farray2))
        for a, b in zip(farray1, farray2, strict=True):
            self.assertNear(float(a), float(b), err)

    @contextlib.contextmanager
    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Iterator[None]:
        """An `OpError` with such a message, or of which a function is true."""
        with self.assertRaises(tf.errors.OpError) as caught:
            yield
        if callable(expected_err_re_or_predicate):
            self.assertTrue(expected_err_re_or_predicate(caught.exception))
        else:
            self.assertRegex(str(caught.exception), expected_err_re_or_predicate)


class Benchmark:
    """A class of benchmarks: accepted."""


def main(argv: Any = None) -> None:
    """Run the tests of the program."""
    unittest.main(argv=argv)


def get_temp_dir() -> str:
    """A folder for files of tests."""
    return tempfile.mkdtemp()


def test_src_dir_path(relative_path: str) -> str:
    """A path beside the program."""
    return os.path.join(os.getcwd(), relative_path)


def is_gpu_available(*args: object, **options: object) -> bool:
    """False: kernels run on the processor."""
    del args, options
    return False


def is_built_with_cuda() -> bool:
    """False."""
    return False


is_built_with_gpu_support = is_built_with_cuda


def gpu_device_name() -> str:
    """Empty: there is none."""
    return ""


def compute_gradient(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3,
    init_targets: Any = None, extra_feed_dict: Any = None,
) -> Any:  # fmt: skip
    """The gradient's matrix by differentiation and by finite differences, a row an input.

    Args:
        x, y: input and output.
        x_shape, y_shape: their shapes.
        x_init_value: where; random by default.
        delta: the distance of the differences.
        init_targets: operations that are run before.
        extra_feed_dict: further feeds.
    """
    session = tf.get_default_session()
    if init_targets is not None:
        session.run(init_targets)
    at = np.random.random_sample(x_shape) if x_init_value is None else np.array(x_init_value)
    at = at.astype(x.dtype.as_numpy_dtype)
    feeds = dict(extra_feed_dict or {})
    rows, columns = int(np.prod(x_shape)), int(np.prod(y_shape))
    exact, measured = np.zeros((rows, columns)), np.zeros((rows, columns))
    seed = tf.placeholder(y.dtype, y_shape)
    (gradient,) = tf.gradients(y, [x], grad_ys=[seed])
    for j in range(columns):
        unit = np.zeros(columns)
        unit[j] = 1
        found = session.run(gradient, {**feeds, x: at, seed: unit.reshape(y_shape)})
        exact[:, j] = np.ravel(found)
    for i in range(rows):
        sides = []
        for sign in (1, -1):
            moved = at.copy()
            moved.reshape(-1)[i] += sign * delta
            sides.append(np.ravel(session.run(y, {**feeds, x: moved})).astype(np.float64))
        measured[i] = (sides[0] - sides[1]) / (2 * delta)
    return exact, measured


def compute_gradient_error(*args: Any, **options: Any) -> float:
    """The greatest difference of both matrices of `compute_gradient`."""
    exact, measured = compute_gradient(*args, **options)
    return float(np.abs(exact - measured).max(initial=0.0))
