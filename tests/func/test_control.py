"""Branches and loops over tensors: results, effects, random numbers, errors."""

import numpy as np
import pytest

import weft as wf
from weft.eager.record.run import tier
from weft.errors import ArgumentError, DTypeError, ShapeError, TracerError, TreeError


def test_a_branch_runs_once_the_program_does() -> None:
    w = wf.tensor([2.0, 3.0])
    for sign, expected in ((1.0, [2.0, 3.0]), (-1.0, [4.0, 6.0])):
        x = wf.tensor(sign)
        y = wf.cond(x > 0, lambda: {"y": w}, lambda: {"y": w * 2})
        assert y["y"].tolist() == expected
    assert wf.cond(3, lambda a: a, lambda a: a + 1, 5).item() == 5
    assert wf.switch(np.int64(1 << 40), [lambda: wf.tensor(0), lambda: wf.tensor(1)]).item() == 1
    assert wf.switch(-3, [lambda: wf.tensor(0), lambda: wf.tensor(1)]).item() == 0


def test_a_branch_may_change_tensors() -> None:
    seen, operand = wf.zeros(2), wf.ones(2)

    def count(x: wf.Tensor) -> wf.Tensor:
        seen.add_(1)
        x.mul_(5)
        return x.sum()

    for flag, total in ((True, 10.0), (False, -1.0)):
        assert wf.cond(wf.tensor(flag), count, lambda x: wf.tensor(-1.0), operand).item() == total
    assert seen.tolist() == [1.0, 1.0]
    assert operand.tolist() == [5.0, 5.0]


def test_scan_is_a_loop() -> None:
    wf.manual_seed(0)
    w, xs = wf.randn(4, 4), wf.randn(6, 3, 4)
    for reverse in (False, True):
        (h, n), ys = wf.scan(
            lambda c, x: ((wf.tanh(c[0] @ w + x), c[1] + 1), {"y": c[0].sum(), "x": x}),
            (wf.zeros(3, 4), 0),
            xs,
            reverse=reverse,
        )
        state, rows = wf.zeros(3, 4), []
        for x in reversed(list(xs)) if reverse else xs:
            rows.append(state.sum())
            state = wf.tanh(state @ w + x)
        assert n.item() == 6
        np.testing.assert_allclose(h.numpy(), state.numpy(), rtol=1e-5)
        stacked = wf.stack(rows[::-1] if reverse else rows)
        np.testing.assert_allclose(ys["y"].numpy(), stacked.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(ys["x"].numpy(), xs.numpy())
    empty, ys = wf.scan(lambda c, x: (c + 1, x * c), 1.0, wf.zeros(0, 3))
    assert empty.item() == 1
    assert tuple(ys.shape) == (0, 3)


def test_loops_change_tensors_in_every_turn() -> None:
    count = wf.zeros(())

    def step(c: wf.Tensor, x: wf.Tensor) -> tuple[wf.Tensor, wf.Tensor]:
        count.add_(x)
        return c + count, count.clone()

    total, seen = wf.scan(step, 0.0, wf.tensor([1.0, 2.0, 3.0]))
    assert (count.item(), total.item(), seen.tolist()) == (6.0, 10.0, [1.0, 3.0, 6.0])

    def turn(x: wf.Tensor) -> wf.Tensor:
        count.mul_(2)
        return x + count

    assert wf.while_loop(lambda x: x < 100, turn, 0.0).item() == 12 + 24 + 48 + 96
    assert count.item() == 96


def test_while_loops_end() -> None:
    n, x = wf.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, s[1] + 1), (1000, 0))
    assert (n.item(), x.item()) == (1, 9)
    assert wf.while_loop(lambda x: x < 10, lambda x: x + 1, 0, maximum=4).item() == 4
    assert wf.fori_loop(wf.tensor(2), 5, lambda i, x: x + i, 0).item() == 9
    assert wf.fori_loop(5, 2, lambda i, x: x + i, 7).item() == 7


def test_nested_loops_capture_from_all_around() -> None:
    a = wf.tensor(2)

    def row(i: wf.Tensor) -> wf.Tensor:
        return wf.fori_loop(
            0, 3, lambda j, s: wf.cond(j < i, lambda: s + a * j, lambda: s - i), wf.tensor(0)
        )

    found = wf.map(row, wf.arange(4)).tolist()
    expected = []
    for i in range(4):
        total = 0
        for j in range(3):
            total = total + 2 * j if j < i else total - i
        expected.append(total)
    assert found == expected


def test_every_turn_draws_its_own_random_numbers() -> None:
    wf.manual_seed(3)
    _, ys = wf.scan(lambda c, _: (c, wf.rand(4)), 0, length=50)
    assert len(np.unique(ys.numpy())) == 200
    total = wf.while_loop(
        lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + wf.rand(3)), (0, 0.0 * ys[0, :3])
    )
    wf.manual_seed(3)
    _, again = wf.scan(lambda c, _: (c, wf.rand(4)), 0, length=50)
    assert again.tolist() == ys.tolist()
    assert len(np.unique(total[1].numpy())) == 3


def test_map_is_a_loop_or_batches() -> None:
    xs = wf.arange(7.0)
    for size in (None, 3, 10):
        found = wf.map(lambda x: {"y": (x * x,)}, xs, batch_size=size)
        assert found["y"][0].tolist() == [x * x for x in range(7)]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_scan(length: int, reverse: bool) -> None:
    wf.manual_seed(length)
    x = wf.randn(2, length, 3, 3)
    found = wf.associative_scan(lambda a, b: a @ b, x.movedim(1, 0), reverse=reverse)
    rows = list(x.movedim(1, 0).numpy())
    order = range(length - 1, -1, -1) if reverse else range(length)
    state, expected = None, {}
    for t in order:
        state = rows[t] if state is None else (state @ rows[t])
        expected[t] = state
    stacked = np.stack([expected[t] for t in range(length)])
    np.testing.assert_allclose(found.numpy(), stacked, rtol=1e-4, atol=1e-4)


def test_disagreements_show_both_sides() -> None:
    x = wf.ones(3)
    with pytest.raises(TreeError) as error:
        wf.cond(x.sum() > 0, lambda: {"a": x}, lambda: {"a": x.double()})
    assert "\n  0: ['a'] float64[3] | ['a'] float32[3]  <- differs" in str(error.value)
    assert "test_control.py:" in str(error.value)
    with pytest.raises(TreeError) as error:
        wf.scan(lambda c, x: ((c, c), x), x, x)
    assert "\n  0: float32[3] | [0] float32[3]  <- differs" in str(error.value)
    assert "\n  1: (nothing)  | [1] float32[3]  <- differs" in str(error.value)
    with pytest.raises(TreeError, match=r"expected a function \(at .*\) that returns a pair"):
        wf.scan(lambda c, x: c, x, x)
    with pytest.raises(ShapeError, match=r"xs\[0\] float32\[3\]\n  xs\[1\] float32\[2\]"):
        wf.scan(lambda c, x: (c, x), 0, (x, x[:2]))
    with pytest.raises(ShapeError, match="expected xs or a length"):
        wf.scan(lambda c, x: (c, x), 0)
    with pytest.raises(DTypeError, match=r"to give one bool, got float32\[3\]"):
        wf.while_loop(lambda x: x, lambda x: x, x)
    with pytest.raises(ArgumentError, match="maximum: expected 0 or more"):
        wf.while_loop(lambda x: x > 0, lambda x: x, 1, maximum=-1)
    with pytest.raises(TreeError, match="at least one branch"):
        wf.switch(0, [])
    with pytest.raises(TreeError, match="got a str among them"):
        wf.scan(lambda c, x: (c, x), "a", x)
    with pytest.raises(TracerError):
        wf.while_loop(lambda x: bool(x > 0), lambda x: x, 1)


def test_a_loop_of_unknown_length_is_compiled_before_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tier, "Interpretation", lambda *_: pytest.fail("interpreted"))
    count, half = wf.while_loop(lambda s: s[0] < 3000, lambda s: (s[0] + 1, s[1] * 0.5), (0, 1.0))
    assert (count.item(), half.item()) == (3000, 0.0)
