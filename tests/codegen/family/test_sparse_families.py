"""Kernels on compressed sparse rows against the references, and their errors for bad indices."""

from __future__ import annotations

from typing import Any, Final

import guarded
import numpy as np
import pytest
from families import TARGETS, check, check_cases, group_for, machine
from harness import Array
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft.codegen.lower import family
from weft.errors import OutOfRangeError
from weft.ir.graph import Graph
from weft.ops.boundary.state import placeholder
from weft.ops.declaration import REGISTRY, Opaque
from weft.runtime.engine import Function, State

OPS: Final = {
    name: family(op.lower.family)
    for name, op in REGISTRY.items()
    if isinstance(op.lower, Opaque) and op.lower.family.startswith(("csr", "segment"))
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("op", OPS)
def test_cases_of_the_catalogue(op: str, name: str) -> None:
    check_cases(OPS[op], op, (name,))


def rows(degrees: list[int]) -> Array:
    return np.concatenate(([0], np.cumsum(degrees))).astype(np.int32)


DEGREES = st.lists(st.sampled_from([0, 0, 1, 2, 3, 9, 40]), max_size=40)


@at_most(25)
@given(
    degrees=DEGREES,
    width=st.sampled_from([1, 3, 16, 70]),
    dtype=st.sampled_from(["float32", "float64", "int32", "uint8"]),
    op=st.sampled_from([name for name in OPS if name.startswith("segment")]),
)
def test_any_segments(degrees: list[int], width: int, dtype: str, op: str) -> None:
    indptr = rows(degrees)
    x = np.random.default_rng(1).integers(0, 9, (indptr[-1], width)).astype(dtype)
    check(OPS[op], op, (x, indptr), {})


@at_most(25)
@given(
    degrees=DEGREES.filter(len),
    width=st.sampled_from([1, 3, 16, 70]),
    dtype=st.sampled_from(["float32", "float64", "float16", "uint8"]),
    op=st.sampled_from([name for name in OPS if name.startswith("segment")]),
    spare=st.booleans(),
)
def test_any_segments_in_any_order(
    degrees: list[int], width: int, dtype: str, op: str, spare: bool
) -> None:
    indptr, random = rows(degrees), np.random.default_rng(1)
    order = random.integers(0, 11, indptr[-1]).astype(np.int32)
    x = random.integers(0, 5, (11, width)).astype(dtype)
    check(OPS[op], op, (x, indptr, order), {"spare": spare})


@at_most(25)
@given(
    degrees=DEGREES,
    heads=st.sampled_from([(), (1,), (3,), (2, 2)]),
    depth=st.sampled_from([1, 3, 16, 70]),
    sampled=st.booleans(),
)
def test_any_products(
    degrees: list[int], heads: tuple[int, ...], depth: int, sampled: bool
) -> None:
    indptr, random = rows(degrees), np.random.default_rng(1)
    indices = random.integers(0, 11, indptr[-1]).astype(np.int32)
    x = random.integers(-4, 5, (11, *heads, depth)).astype(np.float32)
    g = random.integers(-4, 5, (len(degrees), *heads, depth)).astype(np.float32)
    values = random.integers(-4, 5, (len(indices), *heads)).astype(np.float32)
    op = "csr_sampled_matmul" if sampled else "csr_matmul"
    third = g if sampled else values
    check(OPS[op], op, (indptr, indices, third, x), {"heads": len(heads)})


@at_most(25)
@given(ids=st.lists(st.integers(0, 20), max_size=200))
def test_any_order(ids: list[int]) -> None:
    check(OPS["csr_order"], "csr_order", (np.array(ids, np.int32),), {"size": 21})
    check(OPS["csr_indptr"], "csr_indptr", (np.sort(np.array(ids, np.int64)),), {"size": 21})


def run(op: str, arrays: tuple[Array, ...], **attrs: Any) -> list[Array]:
    graph = Graph()
    with graph.as_default():
        xs = [placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        ys = REGISTRY[op].all(*xs, **attrs)
    return Function(graph, list(ys), feeds=xs)(list(arrays), State())


PTR, AT = np.array([0, 2, 4], np.int32), np.array([0, 2, 1, 0], np.int32)
X, W = np.ones((3, 2), np.float32), np.ones(4, np.float32)
BAD: Final = [
    ("csr_order", (AT,), {"size": 2}, "ids[1]: expected 0 <= index < 2, got 2"),
    ("csr_indptr", (AT - 1,), {"size": 3}, "ids[0]: expected 0 <= index < 3, got -1"),
    ("csr_indptr", (AT,), {"size": 3}, "ids[2]: expected sorted ids, got 1 after a larger one"),
    ("csr_rows", (PTR,), {"size": 5}, "indptr[2]: expected 0 first, no decrease, and 5 last, got"),
    ("segment_sum", (X, PTR), {}, "indptr[2]: expected 0 first, no decrease, and 3 last, got 4"),
    ("segment_sum", (X, PTR, AT + 1), {}, "order[1]: expected 0 <= index < 3, got 3"),
    ("segment_max", (X, PTR[::-1].copy(), AT), {}, "indptr[0]: expected 0 first"),
    ("csr_matmul", (PTR, AT + 1, W, X), {}, "indices[1]: expected 0 <= index < 3, got 3"),
    ("csr_matmul", (PTR[::-1].copy(), AT, W, X), {}, "indptr[0]: expected 0 first"),
    ("csr_sampled_matmul", (PTR, AT - 1, X[:2], X), {}, "indices[0]: expected 0 <= index < 3"),
]


@pytest.mark.parametrize(("op", "arrays", "attrs", "text"), BAD)
def test_bad_rows_raise_equally(
    op: str, arrays: tuple[Array, ...], attrs: dict[str, Any], text: str
) -> None:
    with pytest.raises(OutOfRangeError) as compiled:
        run(op, arrays, **attrs)
    with pytest.raises(OutOfRangeError) as reference:
        REGISTRY[op].reference(*arrays, **{**REGISTRY[op].attrs, **attrs})
    assert text in str(compiled.value)
    assert text in str(reference.value)


def test_many_blocks_and_threads_give_the_same_bits() -> None:
    random = np.random.default_rng(3)
    ids = random.integers(0, 5000, 1 << 18).astype(np.int32)
    x = random.standard_normal((len(ids), 8), np.float32)
    indptr, order = run("csr_order", (ids,), size=5000)
    np.testing.assert_array_equal(order, np.argsort(ids, kind="stable"))
    np.testing.assert_array_equal(indptr, run("csr_indptr", (ids[order],), size=5000)[0])
    np.testing.assert_array_equal(ids[order], run("csr_rows", (indptr,), size=len(ids))[0])
    for arrays in ((x, indptr), (x, indptr, order)):
        found = []
        for threads in (1, 2, 4):
            with wf.config.override(threads=threads):
                found.append(run("segment_sum", arrays)[0].tobytes())
        assert found[0] == found[1] == found[2]


def test_no_id_is_read_where_there_is_none() -> None:
    group = group_for("csr_indptr", [np.zeros(0, np.int32)], {"size": 5})
    (ids,), (out,), target = group.inputs, group.outputs, machine("native")
    launches = family("csr_indptr")(group, target)
    found = guarded.run(launches, {ids: np.zeros(0, np.int32)}, out, target)
    assert (found == 0).all()
