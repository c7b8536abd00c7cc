"""Matrices under TensorFlow's names: values by NumPy, gradients by differences, unknown batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ShapeError

RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((3, 4, 4))
SPD = A @ A.transpose(0, 2, 1) + 4 * np.eye(4)
TALL, B, C = (RANDOM.standard_normal((3, *shape)) for shape in ((5, 3), (4, 2), (5, 2)))
LEAST = np.linalg.solve(TALL.transpose(0, 2, 1) @ TALL, TALL.transpose(0, 2, 1) @ C)


def outer(s: Any, u: Any, v: Any) -> Any:
    return tf.matmul(u * tf.expand_dims(s, -2), v, adjoint_b=True)


def put_together(factors: Any, rows: Any) -> Any:
    """The matrices whose factors and order of rows `lu` gives."""
    lower = tf.matrix_band_part(factors, -1, 0) - tf.matrix_diag(tf.matrix_diag_part(factors))
    product = tf.matmul(lower + tf.eye(4, dtype=tf.float64), tf.matrix_band_part(factors, 0, -1))
    return tf.matmul(tf.one_hot(rows, 4, dtype=tf.float64), product, adjoint_a=True)


CASES: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
    "cholesky": (tf.cholesky, [SPD], np.linalg.cholesky(SPD)),
    "cholesky_solve": (tf.cholesky_solve, [np.linalg.cholesky(SPD), B], np.linalg.solve(SPD, B)),
    "det": (tf.matrix_determinant, [A], np.linalg.det(A)),
    "expm": (lambda x: tf.matmul(tf.linalg.expm(x), tf.linalg.expm(-x)), [A], np.eye(4) + 0 * A),
    "inverse": (lambda x: tf.matrix_inverse(x, adjoint=True), [A],
                np.linalg.inv(A).transpose(0, 2, 1)),
    "logdet": (tf.linalg.logdet, [SPD], np.log(np.linalg.det(SPD))),
    "lstsq": (tf.matrix_solve_ls, [TALL, C], LEAST),
    "lstsq, slow": (lambda a, b: tf.matrix_solve_ls(a, b, fast=False), [TALL, C], LEAST),
    "lu": (lambda x: put_together(*tf.linalg.lu(x)), [A], A),
    "pinv": (tf.linalg.pinv, [TALL], np.linalg.pinv(TALL)),
    "qr": (lambda x: tf.matmul(*tf.qr(x)), [TALL], TALL),
    "eigenvalues": (tf.self_adjoint_eigvals, [SPD], np.linalg.eigvalsh(SPD)),
    "eigenvectors": (lambda x: outer(*(lambda w, v: (w, v, v))(*tf.self_adjoint_eig(x))), [SPD],
                     SPD),
    "slogdet": (lambda x: tf.linalg.slogdet(x)[1], [A], np.linalg.slogdet(A)[1]),
    "solve": (tf.matrix_solve, [A, B], np.linalg.solve(A, B)),
    "svd": (lambda x: outer(*tf.svd(x)), [TALL], TALL),
    "singular values": (lambda x: tf.svd(x, compute_uv=False), [TALL],
                        np.linalg.svd(TALL, compute_uv=False)),
    "triangle": (lambda a, b: tf.matrix_triangular_solve(a, b, lower=False, adjoint=True), [SPD, B],
                 np.linalg.solve(np.triu(SPD).transpose(0, 2, 1), B)),
}  # fmt: skip


@pytest.mark.parametrize("batch", [3, None])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, batch: int | None) -> None:
    function, arrays, wanted = CASES[name]
    with tf.Graph().as_default(), tf.Session() as session:
        xs = [tf.placeholder(tf.float64, (batch, *a.shape[1:])) for a in arrays]
        y = function(*xs)
        weights = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
        total = tf.reduce_sum(y * weights)
        given = dict(zip(xs, arrays, strict=True))
        found, *gradients = session.run([y, *tf.gradients(total, xs)], given)
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)
        for i, gradient in enumerate(gradients):
            change = np.cos(3.0 * np.arange(arrays[i].size)).reshape(arrays[i].shape)
            if name.startswith(("cholesky", "logdet", "eigen")) and i == 0:  # of one triangle
                change = change + change.transpose(0, 2, 1)
                change = np.tril(change) if name == "cholesky_solve" else change
            ends: list[float] = []
            for step in (1e-5, -1e-5):
                moved = [a + step * change if i == j else a for j, a in enumerate(arrays)]
                ends.append(session.run(total, dict(zip(xs, moved, strict=True))))
            by_difference = (ends[0] - ends[1]) / 2e-5
            np.testing.assert_allclose((gradient * change).sum(), by_difference, 2e-5, 1e-5)


def test_wrong_shapes() -> None:
    with pytest.raises(ShapeError, match=r"Cholesky: expected square matrices, got shape \(2, 3\)"):
        tf.cholesky(tf.zeros([2, 3]))
    with pytest.raises(ShapeError, match=r"Qr: expected matrices, got shape \(2,\)"):
        tf.qr(tf.zeros([2]))
