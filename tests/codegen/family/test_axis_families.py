"""Running sums, argmax and sorting kernels against the references, along any axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from families import TARGETS, check, check_cases
from harness import Array
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import at_most

from weft.codegen.family import cumulative as module
from weft.codegen.family.argreduce import argreduce
from weft.codegen.family.cumulative import cumulative
from weft.codegen.family.sort import sort, top_k
from weft.ir.dtype import DTYPES, as_dtype
from weft.ops.declaration import Opaque

RUNNING = ("cumsum", "cumprod", "cummax")


def mixed(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Few different values; floats may have NaN, infinities and both zeros."""
    rng = np.random.default_rng(seed)
    kind = as_dtype(dtype)
    x = rng.integers(-4 if kind.kind in "if" else 0, 5, shape).astype(kind.numpy)
    if kind.is_floating and seed % 2:
        special = np.array([np.nan, np.inf, -np.inf, -0.0], kind.numpy)
        x = np.where(rng.random(shape) < 0.2, special[rng.integers(0, 4, shape)], x)
    return x


SHAPES = st.sampled_from(
    [
        (7,),
        (1,),
        (100,),
        (3, 10),
        (2, 33),
        (5, 3, 4),
        (2, 40, 17),
        (3, 5, 70),
        (1, 2, 150),
        (2, 130),
    ]
)


@pytest.mark.parametrize("name", TARGETS)
def test_cases_of_the_catalogue(name: str) -> None:
    for op in RUNNING:
        check_cases(cumulative, op, (name,))
    for op in ("argmax", "argmin"):
        check_cases(argreduce, op, (name,))


@pytest.mark.parametrize("op", RUNNING)
@at_most(20)
@given(
    shape=SHAPES,
    axis=st.integers(0, 2),
    dtype=st.sampled_from([name for name in DTYPES if name != "bool"]),
    exclusive=st.booleans(),
    reverse=st.booleans(),
    seed=st.integers(0, 9),
)
def test_running(
    op: str, shape: Any, axis: int, dtype: str, exclusive: bool, reverse: bool, seed: int
) -> None:
    attrs = {"axis": axis % len(shape), "exclusive": exclusive, "reverse": reverse}
    x = mixed(shape, dtype, seed if op == "cummax" else 0)
    check(cumulative, op, (x,), attrs, rtol=1e-5)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@at_most(40)
@given(
    shape=SHAPES,
    axis=st.integers(0, 2),
    dtype=st.sampled_from(list(DTYPES)),
    out=st.sampled_from(["int64", "int32", "uint8"]),
    seed=st.integers(0, 9),
)
@example(shape=(2, 33), axis=0, dtype="int64", out="int32", seed=0)  # one lane left over, narrowed
def test_argreduce(op: str, shape: Any, axis: int, dtype: str, out: str, seed: int) -> None:
    attrs = {"axis": axis % len(shape), "dtype": as_dtype(out)}
    check(argreduce, op, (mixed(shape, dtype, seed),), attrs)


@pytest.mark.parametrize("name", TARGETS)
def test_sort_cases_of_the_catalogue(name: str) -> None:
    check_cases(sort, "sort", (name,))
    check_cases(top_k, "top_k", (name,))


@at_most(40)
@given(
    shape=SHAPES,
    axis=st.integers(0, 2),
    dtype=st.sampled_from(list(DTYPES)),
    descending=st.booleans(),
    seed=st.integers(0, 9),
)
def test_sort(shape: Any, axis: int, dtype: str, descending: bool, seed: int) -> None:
    attrs = {"axis": axis % len(shape), "descending": descending}
    check(sort, "sort", (mixed(shape, dtype, seed),), attrs)


@at_most(40)
@given(
    shape=SHAPES, share=st.floats(0, 1), dtype=st.sampled_from(list(DTYPES)), seed=st.integers(0, 9)
)
def test_top_k(shape: Any, share: float, dtype: str, seed: int) -> None:
    check(top_k, "top_k", (mixed(shape, dtype, seed),), {"k": round(share * shape[-1])})


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_of_wild_values(dtype: str) -> None:
    kind = as_dtype(dtype)
    bits = np.random.default_rng(0).integers(0, 256, (3, 500 * kind.size), np.uint8)
    x = bits % 2 > 0 if dtype == "bool" else bits.view(kind.numpy)
    for descending in (False, True):
        check(sort, "sort", (x,), {"descending": descending})


def test_the_test_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Opaque("cumulative", combine="multiply")
    monkeypatch.setattr(module, "family_of", lambda node: wrong)
    with pytest.raises(AssertionError):
        check(cumulative, "cumsum", (np.arange(6.0),), {"axis": 0})
