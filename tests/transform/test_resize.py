"""Interpretations derived for other sizes equal newly planned ones, or are rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft import ops
from weft.ir.graph import Graph
from weft.ops.declaration import catalogue
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation
from weft.transform.resize import Fit, Form, Template, UnfitError


def test_numbers_follow_from_sizes() -> None:
    fit = Fit([(8, 3, 24, 2, 7), (8, 5, 40, 6, 9), (8, 11, 88, 7, 15)])
    assert fit.number((8, 8, 8)) == Form((), 0, 1, 8)
    assert fit.number((24, 40, 88)) == Form((0,), 8, 1, 0)
    assert fit.number((-2, -4, -10)) == Form((0,), -1, 1, 1)
    assert fit.number((6, 30, 77)) == Form((1, 0), 1, 1, 0)
    with pytest.raises(UnfitError):
        fit.number((3, 5, 12))
    values = fit.values((8, 100, 800, 9, 104))
    assert values == (100, 9)
    assert fit.value([("a", (3, 8)), ("a", (5, 8)), ("a", (11, 8))])[1] == (Form((0,), 1, 1, 0), 8)


@pytest.mark.parametrize(
    "sizes", [(9, 3, 24, 2, 7), (8, 4, 40, 2, 8), (8, 4, 32, 2, 7), (8, 1, 8, 2, 5)]
)
def test_sizes_that_are_related_otherwise_raise(sizes: tuple[int, ...]) -> None:
    fit = Fit([(8, 3, 24, 2, 7), (8, 5, 40, 6, 9), (8, 11, 88, 7, 15)])
    with pytest.raises(UnfitError):
        fit.values(sizes)


@pytest.mark.parametrize("samples", [[(3,), (5,), (5,)], [(1,), (2,), (3,)]])
def test_samples_that_say_too_little_raise(samples: list[tuple[int, ...]]) -> None:
    with pytest.raises(UnfitError):
        Fit(samples)


def _attention(n: int, split: bool = False) -> Interpretation:
    """A graph with attributes, constants and gradients that depend on `n`."""
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(2, n, 6))
        w = ops.placeholder(dtype="float32", shape=(6, 4))
        y = ops.reshape(ops.reshape(x, shape=(2 * n, 6)) @ w, shape=(2, n, 4))
        s = ops.softmax(y @ ops.transpose(y, perm=(0, 2, 1)), axis=-1)
        z = catalogue.slice(s @ y, begin=(0, 1, 0), end=(2, n, 4)) * (1.0 / n)
        total = ops.sum(ops.tanh(z)) / float(n)
        if split and n > 8:
            total = total + 1.0
        outputs = [total, *[dense(g) for g in gradients([total], [x, w]) if g is not None]]
    return Interpretation(graph, outputs, [x, w])


def _arrays(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.normal(size=s).astype(np.float32) for s in ((2, n, 6), (6, 4))]


def test_another_size_gives_the_bits_of_a_new_interpretation() -> None:
    template = Template([((n, 2 * n), _attention(n)) for n in (3, 7, 12)])
    for n in (2, 5, 12, 31):
        found = template.at((n, 2 * n))(_arrays(n))
        for a, b in zip(found, _attention(n)(_arrays(n)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_called_in_another_order_raises() -> None:
    with pytest.raises(UnfitError):
        Template([((n,), _attention(n, split=True)) for n in (3, 7, 12)])


def test_a_number_that_does_not_follow_raises() -> None:
    def run(n: int) -> Interpretation:
        with Graph().as_default() as graph:
            x = ops.placeholder(dtype="float32", shape=(n,))
            y = x * math.sqrt(n)
        return Interpretation(graph, [y], [x])

    with pytest.raises(UnfitError):
        Template([((n,), run(n)) for n in (3, 7, 12)])
