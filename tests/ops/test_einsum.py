"""Einsum against NumPy: values of random specifications, gradients, order, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import run
from strategies import at_most

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.graph import Graph
from weft.runtime.engine import Function, State
from weft.transform.check import check_gradients

SIZES = dict(zip("abcdef", (2, 3, 1, 4, 2, 3), strict=True))
SPECS = [
    "ij,jk->ik", "ij,kj->ik", "ji,jk", "bij,bjk->bik", "ii", "ii->i", "iij->ji", "i,j->ij",
    "i,i->i", "i,i", "ij->", "ij->ji", "...ij,...jk->...ik", "...i,i", "i...,i...->...",
    "bhqd,bhkd->bhqk", "bhqk,bkhd->bqhd", "ij,jk,kl->il", "a,b,c,d,e->edcba", "ab,bc,cd,de,ef,fa",
    "abc,bd->acd", "...,...", ",ab->ba", "abab->ba", "ij,ij,jk->k",
]  # fmt: skip


def draw_operands(spec: str, rng: Any) -> list[Any]:
    """Operands for a specification; an ellipsis has axes of 2 and 3, one of them 1 at times."""
    sizes = {c: int(rng.integers(1, 5)) for c in sorted(set(spec)) if c.isalpha()}
    dots = [[2, 3], [1, 3], [3]]
    found: list[Any] = []
    for i, term in enumerate(spec.split("->")[0].split(",")):
        named = [sizes[c] for c in term.replace("...", "")]
        at = term.find("...")
        shape = named if at < 0 else [*named[:at], *dots[i % 3], *named[at:]]
        found.append(rng.standard_normal(shape))
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_einsum_is_numpys(spec: str) -> None:
    rng = np.random.default_rng(len(spec))
    xs = draw_operands(spec, rng)
    expected = np.einsum(spec, *xs)
    np.testing.assert_allclose(run(lambda *v: ops.einsum(spec, *v), *xs), expected, rtol=1e-12)
    if sum(x.size for x in xs) < 60:
        check_gradients(lambda *v: ops.einsum(spec, *v), xs)


def test_compiled_einsum_and_unknown_dimensions() -> None:
    rng = np.random.default_rng(0)
    specs = ["ij,jk->ik", "bqd,bkd->bqk", "ij,kj,kl->il", "abc,bd->acd", "ij->j"]
    with Graph().as_default() as graph:
        arrays, fetches, feeds = [], [], []
        for spec in specs:
            xs = [x.astype(np.float32) for x in draw_operands(spec, rng)]
            values = [ops.placeholder(dtype="float32", shape=(None,) * x.ndim) for x in xs]
            fetches.append(ops.einsum(spec, *values))
            arrays.append(xs)
            feeds += values
    found = Function(graph, fetches, feeds=feeds)([x for xs in arrays for x in xs], State())
    for spec, xs, y in zip(specs, arrays, found, strict=True):
        np.testing.assert_allclose(y, np.einsum(spec, *xs), rtol=1e-5, atol=1e-6)


@at_most(40)
@given(st.data())
def test_any_specification(data: st.DataObject) -> None:
    letters = st.text("abcdef", max_size=3)
    terms = data.draw(st.lists(letters, min_size=1, max_size=4))
    known = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(known)))[: data.draw(st.integers(0, len(known)))]
    spec = ",".join(terms) + (f"->{result}" if data.draw(st.booleans()) else "")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    kind = data.draw(st.sampled_from([np.float64, np.int32, np.uint8]))
    ones = data.draw(st.booleans())  # a dimension of 1 broadcasts
    xs = [
        rng.integers(0, 4, [1 if ones and i == 0 and n % 2 else SIZES[c] for n, c in enumerate(t)])
        for i, t in enumerate(terms)
    ]
    xs = [x.astype(kind) for x in xs]
    try:
        expected = np.einsum(spec, *xs)
    except ValueError:
        return  # a broadcast inside of a diagonal
    found = run(lambda *v: ops.einsum(spec, *v), *xs)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected)


def products(graph: Graph) -> int:
    """Multiplications of all matrix products."""
    total = 0
    for node in graph.nodes:
        if node.op == "matmul":
            rows, inner = node.inputs[0].shape or ()
            total += rows * inner * (node.outputs[0].shape or ())[-1]
    return total


@pytest.mark.parametrize("count", [3, 5, 9])
def test_a_chain_ends_in_the_cheap_order(count: int) -> None:
    """Matrices of 30 x 30 times a column: from the right it takes count * 900 products."""
    letters = "abcdefghijkl"
    spec = ",".join([*[letters[i : i + 2] for i in range(count)], letters[count]])
    spec += f"->{letters[0]}"
    with Graph().as_default() as graph:
        xs = [ops.placeholder(dtype="float32", shape=(30, 30)) for _ in range(count)]
        ops.einsum(spec, *xs, ops.placeholder(dtype="float32", shape=(30,)))
        assert products(graph) == count * 900


@at_most(30)
@given(st.integers(0, 3), st.integers(0, 99))
def test_tensordot(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 3, 2))
    left, right = list(rng.permutation(3)[:count]), []
    right = [2 - a for a in left]
    pair = ([int(a) for a in left], [int(a) - 3 for a in right])
    found = run(lambda u, v: ops.tensordot(u, v, pair), x, y)
    np.testing.assert_allclose(found, np.tensordot(x, y, pair), rtol=1e-12)
    if count < 2:
        found = run(lambda u, v: ops.tensordot(u, v, count), x, y)
        np.testing.assert_allclose(found, np.tensordot(x, y, count), rtol=1e-12)


@pytest.mark.parametrize(
    ("spec", "shapes", "error", "message"),
    [
        ("ij,jk", [(2, 2)], GraphError, "expected 2 operands, got 1; specification 'ij,jk'"),
        ("ij", [(2,)], GraphError, "an operand of rank 2 for 'ij', got 1"),
        ("i->j", [(2,)], GraphError, "a result of letters that the operands have"),
        ("i->ii", [(2,)], GraphError, "a result of different letters"),
        ("i1", [(2, 2)], GraphError, "letters and at most one '...' in 'i1'"),
        ("ij...", [(2,)], GraphError, "of known rank, at least 2, for 'ij...', got 1"),
        ("i,i", [(2,), (3,)], ShapeError, "expected one size of 'i' in 'i,i', got 2 and 3"),
    ],
)
def test_errors(spec: str, shapes: list[Any], error: Any, message: str) -> None:
    with Graph().as_default(), pytest.raises(error) as caught:
        ops.einsum(spec, *[ops.placeholder(dtype="float32", shape=s) for s in shapes])
    assert str(caught.value).startswith("einsum: ")
    assert message in str(caught.value)
    assert "(created at test_einsum.py:" in str(caught.value)


def test_diagonals() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4, 5))
    for offset in (0, 1, -2, 4, -9):
        for a, b in ((0, 1), (2, 0), (-1, 1)):
            found = run(lambda v: ops.diagonal(v, offset, a, b), x)  # noqa: B023
            np.testing.assert_array_equal(found, np.diagonal(x, offset, a, b))
            found = run(lambda v: ops.trace(v, offset, a, b), x)  # noqa: B023
            np.testing.assert_allclose(found, np.trace(x, offset, a, b), rtol=1e-12)
        np.testing.assert_array_equal(
            run(lambda v: ops.diag(v, offset), x[0]),  # noqa: B023
            np.diag(x[0], offset),
        )
        np.testing.assert_array_equal(
            run(lambda v: ops.diag(v, offset), x[0, 0]),  # noqa: B023
            np.diag(x[0, 0], offset),
        )
    check_gradients(lambda v: ops.diagonal(v, 1), [x[0]], order=2)
    check_gradients(lambda v: ops.diag_embed(v, -1), [x[0, :2]], order=2)
    empty = np.zeros((0,))
    assert run(ops.diag, empty).shape == (0, 0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: ops.diagonal(x, 0, 1, 1), "diagonal: expected two different axes, got 1 and 1"),
        (
            lambda x: ops.diagonal(x[0, 0]),
            "diagonal: expected x of rank at least 2, got shape (4,)",
        ),
        (lambda x: ops.diag(x), "diag: expected x of rank 1 or 2, got shape (2, 3, 4)"),
        (lambda x: ops.diag_embed(x[0, 0, 0]), "diag_embed: expected x of rank at least 1"),
        (lambda x: ops.tensordot(x, x, 1), "tensordot: expected x.shape[2] == y.shape[0]"),
    ],
)
def test_errors_of_diagonals(build: Any, message: str) -> None:
    with Graph().as_default(), pytest.raises(ShapeError) as caught:
        build(ops.placeholder(dtype="float32", shape=(2, 3, 4)))
    assert message in str(caught.value)
