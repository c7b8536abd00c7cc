"""Plans made from those for other sizes are what checking the call anew would give."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.eager.record.call import interned_type, plan
from weft.eager.record.call.attribute_pattern import refilled, without
from weft.eager.record.call.interned_type import intern
from weft.eager.record.pending.state import trace
from weft.eager.tensor import elementwise
from weft.eager.tensor.elementwise import plans_of
from weft.errors import OutOfMemoryError, ShapeError, WeftError
from weft.ir.dtype import as_dtype, float32
from weft.ops.declaration import REGISTRY, Op
from weft.ops.declaration.attribute import freeze

SIZES = [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31]
DRAWS = 8


def _calls(op: Op, seed: int) -> Iterator[tuple[list, dict]]:
    """Calls of an operation like its examples, with other sizes; many of them are invalid."""
    rng = np.random.default_rng(seed)
    for case in op.cases():
        inputs = [np.asarray(x) for x in case.inputs]
        attrs = {k: freeze(v) for k, v in case.attrs.items()}
        sizes: list[int] = []
        for x in inputs:
            without(x.shape, sizes)
        count = len(sizes)
        for value in attrs.values():
            without(value, sizes)
        for draw in range(DRAWS):
            to = {n: int(rng.choice(SIZES)) for n in set(sizes)}
            new = [to[n] if i < count or n > 2 else n for i, n in enumerate(sizes)]
            if new and draw % 4 == 1:  # sizes that were equal differ
                new[rng.integers(len(new))] = int(rng.choice(SIZES))
            left = iter(new)
            types = [intern(as_dtype(x.dtype), refilled(x.shape, left)) for x in inputs]
            yield types, {k: refilled(v, left) for k, v in attrs.items()}


def _outcome(call, *args):
    try:
        return [(t.dtype, t.shape) for t in call(*args)]
    except WeftError as error:
        return type(error), str(error).split(" (created at")[0]


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in REGISTRY.items()])
def test_types_of_other_sizes_are_those_of_a_check(op, monkeypatch):
    if not any(case.inputs for case in op.cases()):
        return
    monkeypatch.setattr(plan, "_families", {})
    for types, attrs in _calls(op, 0):
        expected = _outcome(op.types, tuple(types), attrs)
        found = _outcome(lambda *args: plan.op_plan(*args).types, op, types, attrs)
        assert found == expected, (types, attrs)


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


PAIRS = {
    "add": (2, lambda x, y: x + y, np.add),
    "less": (2, lambda x, y: x < y, np.less),
    "scaled": (1, lambda x: 2.0 * x - 1, lambda x: 2 * x - 1),
    "relu": (1, F.relu, lambda x: np.maximum(x, 0)),
    "matmul": (2, lambda x, y: x @ y, np.matmul),
    "outer": (2, lambda x, y: x[:, None] * y, lambda x, y: x[:, None] * y),
    "softmax": (1, lambda x: F.softmax(x, -1), _softmax),
    "sum": (1, lambda x: x.sum(0), lambda x: x.sum(0)),
    "product": (1, lambda x: x.prod(-1, keepdim=True), lambda x: x.prod(-1, keepdims=True)),
    "tail": (1, lambda x: (x + 1)[x.shape[0] // 2 :], lambda x: (x + 1)[x.shape[0] // 2 :]),
    "steps": (1, lambda x: (x + 1)[1::3], lambda x: (x + 1)[1::3]),
    "flat": (1, lambda x: x.reshape(-1), lambda x: x.reshape(-1)),
    "turned": (1, lambda x: x.transpose(0, -1), lambda x: np.swapaxes(x, 0, -1)),
    "joined": (2, lambda x, y: wf.stack([x, y], 1), lambda x, y: np.stack([x, y], 1)),
    "where": (2, lambda x, y: wf.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y)),
    "grown": (1, lambda x: x.expand(3, *x.shape), lambda x: np.broadcast_to(x, (3, *x.shape))),
}  # fmt: skip


def _drawn(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Arrays whose shapes often broadcast, and sometimes do not."""
    rank = int(rng.integers(1, 4))
    base = rng.choice(SIZES, rank)
    found = []
    for _ in range(count):
        shape = [int(rng.choice([n, n, n, 1, rng.choice(SIZES)])) for n in base]
        found.append(rng.normal(size=shape[int(rng.integers(0, 2)) * (rank > 1) :]))
    return [x.astype(np.float32) for x in found]


@pytest.mark.parametrize("seed", range(4))
def test_drawn_calls_are_what_numpy_gives(seed):
    rng = np.random.default_rng(seed)
    met = 0
    for _ in range(600):
        name = str(rng.choice(list(PAIRS)))
        count, ours, theirs = PAIRS[name]
        arrays = _drawn(rng, count)
        try:
            expected = theirs(*arrays)
        except (ValueError, IndexError):
            with pytest.raises(WeftError, match=r"test_call_plan\.py:"):
                ours(*map(wf.tensor, arrays))
            continue
        found = ours(*map(wf.tensor, arrays))
        assert tuple(found.shape) == expected.shape, (name, [x.shape for x in arrays])
        if rng.integers(8) == 0:
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
            met += 1
    assert met


def _rows(n: int) -> wf.Tensor:
    return wf.ones(n, 3)


def test_errors_are_the_same_once_sizes_are_known():
    def fails(n: int) -> list[str]:
        texts = []
        for call in (
            lambda: _rows(n) + _rows(n + 1), lambda: _rows(n) @ _rows(n + 1),
            lambda: F.linear(_rows(n), wf.ones(8, 4)), lambda: _rows(n).reshape(n, 4),
        ):  # fmt: skip
            with pytest.raises(ShapeError, match=r"test_call_plan\.py:") as caught:
                call()
            texts.append(str(caught.value))
            for number, name in ((3 * n, "k"), (n + 1, "m"), (n, "n")):
                texts[-1] = texts[-1].replace(str(number), name)
        return texts

    first = fails(50)
    for n in range(60, 90):
        _rows(n) + _rows(n)
        _rows(n) @ wf.ones(3, n)
        F.linear(_rows(n), wf.ones(8, 3))
        _rows(n).reshape(3, n)
    assert fails(91) == first


def test_results_that_cannot_fit_are_refused_once_sizes_are_known():
    for n in range(3, 20):
        wf.ones(n, 1) + wf.ones(1, n)
    huge = wf.ones(1).expand(1 << 31)
    with pytest.raises(OutOfMemoryError, match=r"add: not enough memory.*test_call_plan.py:"):
        huge.reshape(1 << 31, 1) + huge.reshape(1, 1 << 31)


def test_equal_calls_share_a_plan_and_other_sizes_its_pattern():
    def plans(n: int) -> list[plan.Plan]:
        x = wf.ones(n, 4)
        made = x + x, x * 2.0, wf.tanh(x), x.sum(0), F.softmax(x, -1), x.reshape(-1)
        return [y.lazy.record.plan for y in made]

    for n in range(2, 12):
        plans(n)
    assert plans(40) == plans(40)
    assert [p.pattern for p in plans(40)] == [p.pattern for p in plans(41)]
    assert not set(plans(40)) & set(plans(41))
    for p, q in zip(plans(40), plans(41), strict=True):
        assert p.pattern is q.pattern and p.sizes != q.sizes


@pytest.mark.parametrize("function", [F.relu, wf.exp, wf.Tensor.sigmoid, lambda x: x + x])
def test_the_first_call_of_a_kind_has_the_plan_of_later_ones(function):
    x = wf.ones((1,) * 7, dtype=wf.float64)
    plans_of(REGISTRY["relu"]).clear()
    made = [function(x) for _ in range(3)]
    assert len({y.lazy.record.plan for y in made}) == 1


def test_one_off_sizes_neither_evict_plans_in_use_nor_stay(monkeypatch):
    plan._plans.clear()  # of earlier tests
    plans_of(REGISTRY["multiply"]).clear()
    monkeypatch.setattr(plan, "_kept", [0])
    monkeypatch.setattr(plan, "MOST_PLANS", 64)
    monkeypatch.setattr("weft.eager.tensor.elementwise.MOST_PLANS", 64)
    steady = [wf.ones(5) * wf.ones(5), wf.ones(5).sum()]
    used = [y.lazy.record.plan for y in steady]
    for n in range(2000, 2400):
        wf.ones(n) * wf.ones(n)
        wf.ones(n).sum()
        trace.now.pending[:] = [r for r in trace.now.pending if r.plan in used]
    again = [wf.ones(5) * wf.ones(5), wf.ones(5).sum()]
    assert [y.lazy.record.plan for y in again] == used
    assert len(plan._plans) <= 2 * 64 and len(plans_of(REGISTRY["multiply"])) <= 2 * 64


def test_a_changed_branch_is_found_by_its_guard():
    def halves(x):
        n = x.shape[0]
        return x[: n // 2] if n % 2 else x[: n // 3]

    for n in [*range(3, 40), *range(39, 3, -1)]:
        kind = intern(float32, (n, 2))
        (found,) = plan.function_plan(halves, [kind], {}).types
        assert found.shape == (n // 2 if n % 2 else n // 3, 2)


def test_types_in_use_stay_the_same_and_others_go(monkeypatch):
    monkeypatch.setattr(interned_type, "MOST_TYPES", 64)
    monkeypatch.setattr(interned_type, "_kept", [0])
    used = [intern(float32, (n, 77)) for n in range(8)]
    for n in range(1000):
        intern(float32, (n, 78))
    kinds = len(interned_type._types)
    for n in range(3000):
        intern(float32, (n, 79))
    assert len(interned_type._types) <= 2 * kinds
    assert all([intern(float32, (n, 77)) is kind for n, kind in enumerate(used)])


def test_threads_that_record_drawn_sizes_while_plans_and_types_are_dropped(monkeypatch):
    for module, name in (
        (plan, "MOST_PLANS"), (elementwise, "MOST_PLANS"), (interned_type, "MOST_TYPES"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 64)
    wrong: list[object] = []

    def record(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(150):
            n, m = (int(d) for d in rng.integers(0, 60, 2))
            x = wf.ones(n, m)
            kind = x.lazy.type
            made = {
                (n, m): x + wf.ones(1, m), (m, n): x.transpose(0, 1) * 2.0, (m,): x.sum(0),
                (n * m,): x.reshape(-1), (n, 3): x @ wf.ones(m, 3),
            }  # fmt: skip
            wrong.extend([(shape, y.shape) for shape, y in made.items() if y.shape != shape])
            x.add_(1.0)
            wrong.extend([kind] * (x.lazy.type is not kind))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(record, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
