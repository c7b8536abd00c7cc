"""Recurrent kernels for many sizes give the bits of kernels for one size."""

from __future__ import annotations

import functools

import pytest
from families import TARGETS
from pairwise import pairwise
from problems import Problem, check

from weft.ir.dtype import float32, float64
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.numeric import draw

# Steps, rows, width.
SHAPES = [
    *[(3, n, 20) for n in (64, 1, 2, 3, 4, 5, 8, 13, 16, 17, 31)],
    *[(3, 9, n) for n in (300, 1, 3, 8, 15, 16, 17, 33, 64, 65, 70, 130)],
    (5, 9, 300), (0, 9, 20), (3, 0, 20),
]  # fmt: skip


@functools.cache
def _arrays(dtype, batch_first, reverse, steps, rows, width):
    """Inputs of a sequence, and of its gradient."""
    lead = (rows, steps) if batch_first else (steps, rows)
    shapes = (*lead, 4 * width), (4 * width, width), (rows, width), (rows, width)
    z, w, h, c = [draw(shape, dtype, -0.5, 0.5, seed=i) for i, shape in enumerate(shapes)]
    attrs = {"batch_first": batch_first, "reverse": reverse}
    found = REGISTRY["lstm_sequence"].reference(z, w, h, c, **attrs)
    gs = [draw(x.shape, dtype, -1, 1, seed=4 + i) for i, x in enumerate(found)]
    return [z, w, h, c], [*gs[:2], w, c, *found[1:], gs[2]]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("op", "batch_first", "dtype"),
    pairwise(("lstm_sequence", "lstm_sequence_grad"), (False, True), (float32, float64)),
    ids=str,
)
def test_sequences(op, batch_first, dtype, name):
    is_grad = op == "lstm_sequence_grad"
    attrs = {"batch_first": batch_first, "reverse": dtype is float64}

    def feeds(*sizes):
        return list(_arrays(dtype, *attrs.values(), *sizes)[is_grad])

    def types(steps, rows, width):
        lead = (rows, steps) if batch_first else (steps, rows)
        line, gates = (dtype, (*lead, width)), (dtype, (*lead, 4 * width))
        weights, state = (dtype, (4 * width, width)), (dtype, (rows, width))
        if is_grad:
            return [line, line, weights, state, line, gates, gates]
        return [gates, weights, state, state]

    check(Problem(op, types, lambda *_: attrs, feeds, 1e-4, 1e-4), SHAPES, 14, (name,))
