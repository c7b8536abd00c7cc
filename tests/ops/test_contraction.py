"""Matmul: NumPy's values, all transpositions, batches, unknown sizes, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slope import cotangents, interpreted
from strategies import arrays, at_most, dims

from weft import ops
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import float64
from weft.ir.graph import Graph
from weft.transform.check import check_gradients

FLAGS = list(itertools.product([False, True], repeat=2))


@st.composite
def _operands(draw: st.DrawFn) -> tuple[Any, Any, bool, bool]:
    m, k, n = (draw(dims(0, 9)) for _ in range(3))
    tx, ty = draw(st.booleans()), draw(st.booleans())
    batch = draw(st.sampled_from([((), ()), ((2,), ()), ((), (2,)), ((2, 1), (3,)), ((0,), (1,))]))
    x = draw(arrays(float64, (*batch[0], *((k, m) if tx else (m, k)))))
    w = draw(arrays(float64, (*batch[1], *((n, k) if ty else (k, n)))))
    return x, w, tx, ty


@at_most(60)
@given(operands=_operands())
def test_equals_einsum(operands: tuple[Any, Any, bool, bool]) -> None:
    x, w, tx, ty = operands
    found = interpreted(lambda a, b: ops.matmul(a, b, transpose_x=tx, transpose_y=ty), x, w)
    pattern = f"...{'km' if tx else 'mk'},...{'nk' if ty else 'kn'}->...mn"
    np.testing.assert_allclose(found, np.einsum(pattern, x, w), atol=1e-12)


@pytest.mark.parametrize(("tx", "ty"), FLAGS)
@pytest.mark.parametrize("batch", [((), ()), ((2,), ()), ((2,), (2,)), ((), (2,)), ((2, 1), (3,))])
def test_gradients(tx: bool, ty: bool, batch: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((*batch[0], *((3, 2) if tx else (2, 3))))
    w = rng.standard_normal((*batch[1], *((4, 3) if ty else (3, 4))))
    check_gradients(lambda a, b: ops.matmul(a, b, transpose_x=tx, transpose_y=ty), [x, w], order=2)


@pytest.mark.parametrize(
    "shapes", [((None, 3), (3, 4)), ((None, None), (None, None)), (None, None)]
)
def test_gradients_with_unknown_sizes(shapes: Any) -> None:
    x, w = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    expected = cotangents(ops.matmul, [x, w])
    for found, want in zip(cotangents(ops.matmul, [x, w], shapes), expected, strict=True):
        np.testing.assert_allclose(found, want)


def test_a_batch_times_a_matrix_has_one_product_for_the_weights() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(5, 7, 3))
        w = ops.placeholder(dtype="float32", shape=(3, 4))
        _, dw = ops.matmul.vjp(ops.matmul(x, w), None, x, w, transpose_x=False, transpose_y=False)
    assert dw.node.op == "matmul"
    assert [v.shape for v in dw.node.inputs] == [(35, 3), (35, 4)]
    assert not [n for n in graph.nodes if n.op == "sum_to"]


def test_half_precision_accumulates_in_float32() -> None:
    ones = np.ones((1, 4096), np.float16)
    assert interpreted(ops.matmul, ones, ones.T) == 4096.0


@pytest.mark.parametrize(
    ("x", "w", "flags", "text"),
    [
        (
            (100, 784), (748, 10), {},
            r"inner dimensions differ: expected x\.shape\[1\] == w\.shape\[0\], got 784 and 748",
        ),
        (
            (784, 100), (10, 748), {"transpose_x": True, "transpose_y": True},
            r"inner dimensions differ: expected x\.shape\[0\] == w\.shape\[1\], got 784 and 748",
        ),
        (
            (2, 3, 4), (2, 5, 6), {},
            r"inner dimensions differ: expected x\.shape\[2\] == w\.shape\[1\], got 4 and 5",
        ),
        ((4,), (4, 2), {}, r"expected x of rank 2 or more, got shape \(4,\)"),
        ((2, 4), (4,), {}, r"expected w of rank 2 or more, got shape \(4,\)"),
        ((2, 3, 4), (3, 4, 5), {}, r"shapes do not broadcast: \(2,\) and \(3,\)"),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected(x: Any, w: Any, flags: Any, text: str) -> None:
    with Graph().as_default():
        a, b = (ops.placeholder(dtype="float32", shape=s) for s in (x, w))
        with pytest.raises(ShapeError, match=f"^matmul: {text} .created at test_contraction"):
            ops.matmul(a, b, **flags)


def test_types_that_have_no_product() -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="int8", shape=(2, 2))
        with pytest.raises(
            DTypeError, match="expected a floating or complex type, int32 or int64, got int8"
        ):
            ops.matmul(x, x)
