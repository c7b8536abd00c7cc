"""Repeated recordings are recognized in one pass, with the same result as a full walk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import config, nn
from weft.eager.record.pending.lazy import Record
from weft.eager.record.recognition import program_cache
from weft.eager.record.recognition.program_cache import recurring
from weft.eager.record.recognition.structure import Structure, structure_of
from weft.eager.record.run import program, shortcut

Found = list[bool]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[Found]:
    """Whether each recording was recognized; then the result equals that of a full walk."""
    seen: Found = []

    def compared(records: Sequence[Record]) -> Structure | None:
        structure = recurring(records)
        seen.append(structure is not None)
        if structure is not None:
            due = [y for r in records for y in r.outputs if y.array is None and y.is_live]
            assert list(structure.outputs) == due
            assert structure == structure_of(due)
        return structure

    monkeypatch.setattr(program, "recurring", compared)
    monkeypatch.setattr(program_cache, "_met", OrderedDict())
    monkeypatch.setattr(shortcut, "RUNS", 1 << 30)
    with config.override(compile=True):
        yield seen


def _training(found: Found, after: Callable[[int, nn.Module], object]) -> list[float]:
    """Losses of six steps; `after` is called after each."""
    wf.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = wf.optim.Adam(model.parameters(), 0.05)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    losses: list[float] = []
    for i in range(6):
        found.clear()
        loss = nn.functional.cross_entropy(model(wf.from_numpy(x)), wf.tensor([0, 1, 2, 1]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
        after(i, model)
    return losses


def test_training_steps_are_recognized(found: Found) -> None:
    kept: list[Found] = []
    losses = _training(found, lambda i, model: kept.append(list(found)))
    assert kept[-1] == [True] and losses[-1] < losses[0]


@pytest.mark.parametrize("change", ["load", "assign", "freeze", "look"])
def test_what_changes_between_steps_is_seen(found: Found, change: str) -> None:
    def after(i: int, model: nn.Module) -> object:
        weight = next(iter(model.parameters()))
        if i != 3:
            return None
        if change == "load":
            return model.load_state_dict({k: v * 0 for k, v in model.state_dict().items()})
        if change == "assign":
            with wf.no_grad():
                weight[0] = 0.0
        elif change == "freeze":
            weight.array.flags.writeable = False
        return weight.detach().numpy().sum()

    with config.override(compile=False):
        expected = _training(found, after)
    np.testing.assert_allclose(_training(found, after), expected, rtol=1e-5)


def _twice(found: Found, first: Callable[[], object], then: Callable[[], object]) -> bool:
    """Whether `then` is taken for a repetition of `first`, which was computed twice."""
    for _ in range(2):
        held = first()
        wf.synchronize()
    found.clear()
    held = then()
    wf.synchronize()
    del held
    return found[-1]


def test_other_links_are_another_recording(found: Found) -> None:
    x, y = wf.ones(3), wf.full((3,), 2.0)
    assert _twice(found, lambda: x * y + y, lambda: x * y + y)
    assert _twice(found, lambda: x * y + y, lambda: y * x + x)  # only the leaves are others
    assert not _twice(found, lambda: x * y + y, lambda: x * y + x)
    assert not _twice(found, lambda: x * y * y, lambda: (x * y) * (x * y))


def test_links_that_take_turns_are_all_recognized(found: Found) -> None:
    x, y = wf.ones(3), wf.full((3,), 2.0)
    ways: list[Callable[[], object]] = [
        lambda: x * y + y, lambda: x * y + x, lambda: (z := x * y, z + z)
    ]  # fmt: skip
    for _ in range(8):
        found.clear()
        for way in ways:
            held = way()
            wf.synchronize()
            del held
    assert found == [True] * 3


def test_there_are_so_many_ways_at_most(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "MOST_WAYS", 2)
    test_training_steps_are_recognized(found)
    with pytest.raises(AssertionError):
        test_links_that_take_turns_are_all_recognized(found)
    assert found.count(True) == 2


def test_what_is_shown_is_part_of_it(found: Found) -> None:
    x = wf.ones(3)

    def inner() -> object:
        y = x * x
        return y, y + x

    assert _twice(found, inner, inner)
    assert not _twice(found, inner, lambda: x * x + x)


def test_shared_memory_is_another_recording(found: Found) -> None:
    a, b = np.ones(3, np.float32), np.ones(3, np.float32)
    x, y, z = wf.from_numpy(a), wf.from_numpy(b), wf.from_numpy(a)
    assert not _twice(found, lambda: x * y, lambda: x * z)


def test_what_needs_a_gradient_is_another_recording(found: Found) -> None:
    x, w = wf.ones(3), wf.ones(3, requires_grad=True)
    assert not _twice(found, lambda: x * x + x, lambda: w * w + w)
    y = w * 2.0
    wf.synchronize()  # its history is needed by backward passes alone
    assert _twice(found, lambda: w * w + w, lambda: y * y + y)
    (y * y + y).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [10.0] * 3


@at_most(30)
@given(st.data())
def test_drawn_recordings(data: st.DataObject) -> None:
    """Some calls on some values, some results held, and the same or something else again."""
    with pytest.MonkeyPatch.context() as patch, config.override(compile=True):
        seen: Found = []

        def compared(records: Sequence[Record]) -> Structure | None:
            structure = recurring(records)
            seen.append(structure is not None)
            if structure is not None:
                assert structure == structure_of(structure.outputs)
            return structure

        patch.setattr(program, "recurring", compared)
        draw = st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=4)
        options = data.draw(st.lists(draw, min_size=1, max_size=2))
        values = [wf.full((2,), float(i), requires_grad=i == 1) for i in range(3)]
        for choice in data.draw(st.lists(st.integers(0, len(options) - 1), max_size=6)):
            _run(options[choice], values)


def _run(calls: list[tuple[int, int, int]], values: list[wf.Tensor]) -> None:
    """Each call: two values of those so far, and whether its result is held."""
    pool, held, expected = list(values), [], []
    arrays = [np.full(2, float(i), np.float32) for i in range(3)]
    for a, b, keep in calls:
        a, b = a % len(pool), b % len(pool)
        pool.append(pool[a] + pool[b])
        arrays.append(arrays[a] + arrays[b])
        if keep:
            held.append(pool[-1])
            expected.append(arrays[-1])
    del pool
    wf.synchronize()
    for y, array in zip(held, expected, strict=True):
        assert y.tolist() == array.tolist()


def test_other_sizes_are_recognized(found: Found) -> None:
    w = wf.from_numpy(np.ones(4, np.float32))

    def mean(length: int) -> float:
        x = wf.from_numpy(np.arange(length * 4.0, dtype=np.float32).reshape(length, 4))
        return float((x * w + x).sum(0).mean())

    means = [mean(length) for length in (5, 6, 5, 9)]
    assert means == [float(np.arange(n * 4.0).mean() * 2 * n) for n in (5, 6, 5, 9)]
    assert found == [False, True, True, True]


def test_what_nobody_needs_does_not_hide_a_recording(found: Found) -> None:
    x, y = wf.ones(3), wf.full((3,), 2.0)

    def wasteful() -> object:
        (y + y).sum()  # two records of which nothing is shown
        return x * y + y

    assert _twice(found, wasteful, wasteful)
