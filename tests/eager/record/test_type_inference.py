"""Types derived from those for other sizes equal the types of an actual call."""

from __future__ import annotations

import math

import numpy as np
import pytest

import weft as wf
from weft.eager.record.call import plan
from weft.eager.record.call.interned_type import intern
from weft.errors import ShapeError
from weft.ir.dtype import float32
from weft.ops.declaration import catalogue as op


@pytest.fixture
def calls(monkeypatch):
    """The sizes for which functions were called."""
    monkeypatch.setattr(plan, "_families", {})
    found = []
    before = plan._derived

    def derived(function, types, static):
        found.append(types[0].shape)
        return before(function, types, static)

    monkeypatch.setattr(plan, "_derived", derived)
    return found


def _types(function, *shapes):
    types = [intern(float32, shape) for shape in shapes]
    return [t.shape for t in plan.function_plan(function, types, {}).types]


def test_a_function_is_not_called_for_every_size(calls):
    def both(x, w):
        return op.matmul(x, w), op.sum(x, axes=(1,))

    for n in range(10, 40):
        for width in (5, 6, 7):
            assert _types(both, (2, n, 8), (8, width)) == [(2, n, width), (2, 8)]
    assert len(calls) < 40


def test_what_is_not_on_a_line_is_asked_for(calls):
    def some(x):
        return x[: min(x.shape[0], 30)]

    for n in range(10, 40):
        assert _types(some, (n, 8)) == [(min(n, 30), 8)]


@pytest.mark.parametrize(
    "length",
    [
        lambda n: -(-n // 2), lambda n: n // 3, lambda n: int(n * 1.5), lambda n: int(n / 4) + 1,
        lambda n: 1 + n % 4, lambda n: len(range(0, n, 7)) + 1, lambda n: 1 << n.bit_length(),
        lambda n: n**2, lambda n: max(n, 20), lambda n: 5 if n == 23 else 7, lambda n: abs(n - 20),
        lambda n: (n - 1) // 2 * n + 1, lambda n: round(n, -1) + 1, lambda n: hash(f"{n}") % 1 + n,
        lambda n: int(np.prod((n, 3))), lambda n: math.ceil(n / 2), lambda n: divmod(n, 5)[1] + 1,
    ],
)  # fmt: skip
def test_any_length_that_is_computed_from_a_size_is_right(length, calls):
    def cut(x):
        return op.slice(op.concatenate(x, x, axis=0), begin=(0,), end=(length(x.shape[0]),))

    for n in [*range(10, 30), *range(30, 10, -1)]:
        assert _types(cut, (n,)) == [(min(length(n), 2 * n),)]


def test_halves_and_what_cannot_be_halved(calls):
    def halves(x):
        return op.reshape(x, shape=(-1, 2))

    for n in range(10, 60, 2):
        assert _types(halves, (n,)) == [(n // 2, 2)]
    with pytest.raises(ShapeError):
        _types(halves, (31,))


def test_an_axis_that_changes_beside_sizes():
    rng = np.random.default_rng(0)
    for _ in range(12):
        for shape in ((10, 5, 3), (6, 10, 4)):
            for axis in range(3):
                x = rng.normal(size=shape).astype(np.float32)
                index = rng.integers(0, shape[axis], rng.integers(1, 9))
                found = wf.tensor(x).index_fill(axis, wf.tensor(index), 0)
                np.put_along_axis(
                    x, index.reshape([-1 if i == axis else 1 for i in range(3)]), 0, axis
                )
                np.testing.assert_array_equal(found.numpy(), x)
