"""Philox against its published vectors; layout, repeatability and moments of the distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from running import run

from weft import ops
from weft.errors import DTypeError, ShapeError
from weft.ir.graph import Graph
from weft.ops.random.counter_based import philox
from weft.ops.special.error_function import erfinv
from weft.transform.interpreter import Memory, evaluate

STEP = np.array(7, np.uint64)
SEED = (1234, 5678)


# Known answers of Random123's philox4x32_10 (kat_vectors): counter, key, result.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(counter: Any, key: Any, expected: Any) -> None:
    words = philox(tuple(np.array([c], np.uint64) for c in counter), key)
    assert tuple(int(w[0]) for w in words) == expected


def test_layout_of_random_bits() -> None:
    step = (5 << 32) + 9
    bits = run(lambda c: ops.random_bits(c, seed=SEED, shape=(3, 50)), np.array(step, np.uint64))
    flat = bits.reshape(-1)
    for i in (0, 1, 15, 16, 63, 64, 100, 149):
        block, word = 16 * (i // 64) + i % 16, i % 64 // 16
        words = philox(tuple(np.array([c], np.uint64) for c in (block, 0, 9, 5)), SEED)
        assert int(flat[i]) == int(words[word][0])


def test_steps_and_seeds_differ_and_repeat() -> None:
    with Graph().as_default() as graph:
        count = ops.counter(key="step")
        x = ops.random_uniform(count, SEED, (100,))
        other = ops.random_uniform(count, (1, 2), (100,))
    memory, again = Memory(), Memory()
    first, second = evaluate(graph, [x, other], {}, memory), evaluate(graph, [x], {}, memory)
    assert (first[0] != second[0]).all()
    assert (first[0] != first[1]).all()
    np.testing.assert_array_equal(evaluate(graph, [x], {}, again)[0], first[0])
    assert memory.counters == {"step": 2}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform(dtype: str) -> None:
    x = run(lambda c: ops.random_uniform(c, SEED, (200, 100), dtype), STEP).astype(np.float64)
    assert 0 <= x.min() < 0.01
    assert 0.99 < x.max() < 1
    assert abs(x.mean() - (0.5 if dtype != "bfloat16" else 0.498)) < 0.01
    assert abs(x.std() - math.sqrt(1 / 12)) < 0.01
    counts = np.histogram(x, 16, (0, 1))[0]
    assert ((counts - 1250) ** 2 / 1250).sum() < 45  # chi-square, 15 degrees of freedom: p < 1e-4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_normal(dtype: str) -> None:
    x = run(lambda c: ops.random_normal(c, SEED, (40000,), dtype), STEP).astype(np.float64)
    assert abs(x.mean()) < 0.02
    assert abs(x.std() - 1) < 0.02
    assert abs((x**3).mean()) < 0.06
    assert abs((x**4).mean() - 3) < 0.15
    shifted = run(lambda c: ops.random_normal(c, SEED, (40000,), dtype, 5.0, 2.0), STEP)
    np.testing.assert_allclose(shifted.astype(np.float64), x * 2 + 5, atol=1e-2, rtol=1e-2)


def test_truncated_normal() -> None:
    x = run(lambda c: ops.truncated_normal(c, SEED, (40000,)), STEP)
    assert np.abs(x).max() <= 2
    assert abs(x.mean()) < 0.02
    assert abs(x.std() - 0.8796) < 0.01  # of a normal cut at two standard deviations


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 10, "int32"), (-3, 4, "int8"), (250, 256, "uint8"), (-(2**63), 2**63, "int64"),
     (0, 2**64, "uint64"), (-(2**31), 2**31, "int32"), (2**40, 2**40 + 3, "int64")],
)  # fmt: skip
def test_integers(low: int, high: int, dtype: str) -> None:
    x = run(lambda c: ops.random_integers(c, SEED, (8000,), low, high, dtype), STEP)
    assert x.dtype == dtype
    values = [int(v) for v in x]
    assert low <= min(values) <= max(values) < high
    if high - low <= 10:
        counts = np.bincount([v - low for v in values], minlength=high - low)
        expected = 8000 / (high - low)
        assert ((counts - expected) ** 2 / expected).sum() < 35
    else:
        assert abs(sum(values) / 8000 - (low + high) / 2) < (high - low) / 50


def test_bernoulli_permutation_categorical() -> None:
    kept = run(lambda c: ops.bernoulli(c, SEED, (20000,), 0.3), STEP)
    assert abs(kept.mean() - 0.3) < 0.015
    assert run(lambda c: ops.bernoulli(c, SEED, (999,), 1.0), STEP).all()
    assert not run(lambda c: ops.bernoulli(c, SEED, (999,), 0.0), STEP).any()
    order = run(lambda c: ops.random_permutation(c, SEED, 100), STEP)
    assert sorted(order.tolist()) == list(range(100)) != order.tolist()
    logits = np.log(np.array([[0.1, 0.6, 0.3], [1 / 3, 1 / 3, 1 / 3]], np.float32))
    drawn = run(lambda c, x: ops.categorical(c, SEED, x, 9000), STEP, logits, open_shapes=True)
    shares = [np.bincount(row, minlength=3) / 9000 for row in drawn]
    np.testing.assert_allclose(shares, np.exp(logits), atol=0.02)


def test_a_shape_may_be_a_value() -> None:
    shape = np.array([3, 4], np.int32)
    for f in (ops.random_uniform, ops.random_normal):
        for dtype in ("float32", "float64"):
            found = run(lambda c, s, f=f, d=dtype: f(c, SEED, s, d), STEP, shape)
            np.testing.assert_array_equal(found, run(lambda c: f(c, SEED, (3, 4), dtype), STEP))  # noqa: B023


def test_erfinv_inverts_erf() -> None:
    x = np.concatenate([np.linspace(-0.999, 0.999, 999), [1 - 1e-12, 1e-300, 0.0]])
    y = run(erfinv, x)
    np.testing.assert_allclose([math.erf(v) for v in y], x, rtol=1e-15, atol=1e-16)


def test_wrong_arguments() -> None:
    with Graph().as_default():
        with pytest.raises(DTypeError, match="counter: expected uint64, got int32"):
            ops.random_bits(ops.placeholder(dtype="int32", shape=()), seed=SEED, shape=(2,))
        count = ops.counter(key="k")
        with pytest.raises(ShapeError, match="seed: expected two numbers from 0"):
            ops.random_bits(count, seed=(1, -1), shape=(2,))
        with pytest.raises(ShapeError, match="expected low < high, got 3 and 3"):
            ops.random_integers(count, SEED, (2,), 3, 3)
