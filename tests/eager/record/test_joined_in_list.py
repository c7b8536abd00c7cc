"""Arrays that are joined in a list are copied behind one another; their cotangents are views."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.eager.record.run.stitch import Stitching

WAYS = {
    "stack": lambda xs: wf.stack(xs),
    "cat": lambda xs: wf.cat(xs),
    "cat of a view": lambda xs: wf.cat([x[: 1 + i % 2] for i, x in enumerate(xs)]),
    "one twice": lambda xs: wf.cat([*xs, xs[0]]),
    "columns": lambda xs: wf.stack(xs, 1),
}


def _found(way, count: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    xs = [wf.tensor(rng.standard_normal((size, 3), np.float32)) for _ in range(count)]
    ws = [x.requires_grad_() if i % 3 else x for i, x in enumerate(xs)]
    y = way([w * 2 for w in ws])
    last = way([w.exp().view(size, 3) for w in ws])
    ((y + last.square()) * y).sum().backward()
    return [y.detach().numpy(), last.detach().numpy(), *[w.grad.numpy() for w in ws[1:3]]]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_joined_arrays_have_the_bits_of_a_program(way, monkeypatch):
    lists: list[int] = []
    run = Stitching.run
    monkeypatch.setattr(Stitching, "run", lambda self: (lists.append(1), run(self))[1])
    for count, size in ((5, 2), (6, 3), (9, 20_000)):
        lists.clear()
        found = _found(way, count, size)
        assert lists
        with config.override(compile=True):
            for a, b in zip(found, _found(way, count, size), strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_part_may_be_wanted_itself():
    xs = [wf.full((4,), float(i), requires_grad=True) for i in range(6)]
    weight = wf.arange(24.0)
    for _ in range(2):
        (wf.cat(xs) * weight).sum().backward()
        for i, x in enumerate(xs):
            assert x.grad.tolist() == list(range(4 * i, 4 * i + 4))
            x.grad = None
    assert wf.cat([wf.ones(2), wf.ones(0), wf.zeros(1), wf.ones(0)]).tolist() == [1.0, 1.0, 0.0]
