"""Loops with a new shape at every step: plans for a few sizes serve the others."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.eager.record import dynamic_shape as sizes
from weft.eager.record import plan
from weft.eager.record import prepared_program as programs
from weft.eager.record.dynamic_shape import Family
from weft.nn import functional as F

pytestmark = pytest.mark.usefixtures("unstitched")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No program or family of an earlier test."""
    monkeypatch.setattr(programs, "_programs", type(programs._programs)())
    monkeypatch.setattr(programs, "_families", {})
    monkeypatch.setattr("weft.eager.record.dynamic_shape._families", type(programs._programs)())
    monkeypatch.setattr(programs, "ENOUGH", float("inf"))  # all is interpreted, however slowly


@pytest.fixture
def expanded(monkeypatch):
    """Counts structures that are expanded."""
    counted = []
    before = programs.expand

    def count(structure, as_rows=False):
        counted.append(structure)
        return before(structure, as_rows)

    monkeypatch.setattr(programs, "expand", count)
    return counted


def _train(lengths, heads=2, width=8):
    wf.manual_seed(0)
    words, qkv = nn.Embedding(30, width), nn.Linear(width, 3 * width)
    norm, out = nn.LayerNorm(width), nn.Linear(width, 4)
    parameters = [p for m in (words, qkv, norm, out) for p in m.parameters()]
    optimizer = wf.optim.Adam(parameters, lr=0.01)
    rng = np.random.default_rng(0)
    losses = []
    for n in lengths:
        x = norm(words(wf.from_numpy(rng.integers(0, 30, (3, n)))))
        parts = qkv(x).reshape(3, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        logits = out(y.transpose(1, 2).reshape(3, n, width).mean(1))
        loss = F.cross_entropy(logits, wf.from_numpy(rng.integers(0, 4, 3)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [p.detach().numpy().copy() for p in parameters]


LENGTHS = [5, 9, 14, 3, 1, 8, 21, 4, 2, 11, 30, 12, 17, 6]


def test_a_loop_over_lengths_has_the_bits_of_one_that_knows_nothing(monkeypatch, expanded):
    losses, weights = _train(LENGTHS)
    assert len(expanded) < len(LENGTHS)
    programs._programs.clear()
    programs._families.clear()
    monkeypatch.setattr(Family, "at", lambda self, sizes: None)
    wanted, others = _train(LENGTHS)
    assert losses == wanted
    for a, b in zip(weights, others, strict=True):
        np.testing.assert_array_equal(a, b)


def test_lengths_that_were_equal_by_chance_may_differ(expanded):
    def product(m, n):
        x, y = np.full((m, 4), 2, np.float32), np.ones((n, 4), np.float32)
        return (wf.from_numpy(x) @ wf.from_numpy(y).T).sum(0).numpy()

    for m, n in ((3, 3), (5, 5), (8, 8), (9, 9), (4, 6), (6, 2)):
        np.testing.assert_array_equal(product(m, n), np.full(n, 8.0 * m))
    assert len(expanded) == 4  # (9, 9) and (6, 2) are not


def test_errors_name_the_shapes_of_their_own_structure():
    def pick(n, i):
        table = wf.arange(0, n).float()
        return table[wf.tensor([0, i])].sum().item()

    for n in (4, 6, 9, 11):
        assert pick(n, n - 1) == n - 1
    with pytest.raises(wf.errors.WeftError, match="7") as caught:
        pick(7, 7)
    assert "test_dynamic_shape.py" in str(caught.value)


def test_what_depends_on_sizes_in_python_is_another_program():
    def tail(n):
        return wf.arange(0, n)[-min(n, 5) :].sum().item()

    for n in (2, 3, 4, 6, 9, 13, 1, 40):
        assert tail(n) == sum(range(n)[-5:])


def test_families_are_bounded(monkeypatch):
    monkeypatch.setattr("weft.eager.record.dynamic_shape.MOST_FAMILIES", 3)
    for function in (wf.sin, wf.cos, wf.exp, wf.tanh, wf.sqrt):
        function(wf.ones(3)).numpy()
    assert len(sizes._families) == 3


def test_plans_are_bounded_but_those_of_programs_stay(monkeypatch):
    for plans in (plan._plans, *plan.further_plans):  # of earlier tests
        plans.clear()
    monkeypatch.setattr(plan, "MOST_PLANS", 64)
    weight = wf.ones(3)

    def square():
        return (weight * weight).sum().item()

    square()
    steady = dict(programs._programs)
    for n in range(2, 200):
        wf.ones(n).sin()
        assert len(plan._plans) <= 64
    square()
    assert set(steady) <= set(programs._programs)
    assert sum(p.runs for p in programs._programs.values()) == 2
