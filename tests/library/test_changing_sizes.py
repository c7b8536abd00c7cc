"""Library kernels give what the interpreter gives while sizes change at every step."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import config
from weft.eager.record.pending import state
from weft.eager.record.run import stitched_tier, tier_choice
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.record.run.stitched_tier import Compiling, Stitched
from weft.eager.record.run.tier import Interpreted
from weft.errors import OutOfRangeError
from weft.library import workspace
from weft.nn import functional as F

Program = Callable[[int], tuple[Any, ...]]
SIZES = (5, 3, 7, 2, 1, 0, 13, 3, 64, 100, 1, 0, 8)


@contextlib.contextmanager
def stitched() -> Iterator[None]:
    """Every structure runs on library kernels, however often it has run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tier_choice, "_tiers", OrderedDict())
        patch.setattr(stitched_tier, "STITCHED_RUNS", 1 << 30)
        yield
        wf.synchronize()


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """No structure is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tier_choice, "_tiers", OrderedDict())
        patch.setattr(tier_choice, "_first", partial(Interpreted, for_good=True))
        yield
        wf.synchronize()


def _drawn(*shape: int, seed: int = 0) -> wf.Tensor:
    found = np.random.default_rng((seed, *shape)).standard_normal(shape)
    return wf.tensor(found.astype(np.float32))


def _arrays(values: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    return [x.detach().numpy().copy() for x in values]


def _beginning(n: int) -> tuple[Any, ...]:
    x = _drawn(n).requires_grad_()
    y = x[:3]
    (y * y).sum().backward()
    return y, x.grad, y + 0.0


def _reductions(n: int) -> tuple[Any, ...]:
    x = _drawn(n, 4)
    return x.sum(0), x.sum(0) * 2, x.mean(), x.t().contiguous(), x.flip(0), x.cumsum(0)


def _joined(n: int) -> tuple[Any, ...]:
    x, y = _drawn(n, 1), _drawn(1, n)
    return x + y, x.expand(n, 3) * 2, wf.cat([x, x, _drawn(2, 1)]), F.pad(y, (max(0, 3 - n), 0))


def _resampled(n: int) -> tuple[Any, ...]:
    x = _drawn(1, 2, n + 2)
    return tuple([F.interpolate(x, size=2 * n + 3, mode=mode) for mode in ("linear", "nearest")])


def _accumulated(n: int) -> tuple[Any, ...]:
    x, w = _drawn(n, 3).requires_grad_(), _drawn(3, 4).requires_grad_()
    y = (x @ w).relu() + x[: n // 2].sum()
    (y * y).sum().backward(retain_graph=True)
    y.sum().backward()
    (once,) = wf.autograd.grad((x**3).sum(), x, create_graph=True)
    (twice,) = wf.autograd.grad((once * once).sum(), x)
    return y, x.grad, w.grad, once, twice


def _changed(n: int) -> tuple[Any, ...]:
    x = _drawn(n + 2, 3)
    y = x * 2
    x.add_(1.0)
    z = x + y
    x[0:2] = 7.0
    column = x[:, 1]
    column.mul_(3.0)
    return x, y, z, column


def _trained(n: int) -> tuple[Any, ...]:
    w = _drawn(n + 1, 2).requires_grad_()
    optimizer = wf.optim.Adam([w], lr=0.1)
    for i in range(3):
        optimizer.zero_grad()
        ((w - i) ** 2).sum().backward()
        optimizer.step()
    return w, w.grad


PROGRAMS = [
    _beginning, _reductions, _joined, _resampled, _accumulated, _changed, _trained,
]  # fmt: skip


@pytest.mark.parametrize("run", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_programs_in_ever_new_sizes(run: Program, threads: int) -> None:
    for n in SIZES:
        with interpreted():
            wanted = _arrays(run(n))
        with config.override(threads=threads), stitched():
            found = _arrays(run(n))
        for y, want in zip(found, wanted, strict=True):
            assert y.dtype == want.dtype
            np.testing.assert_allclose(y, want, 2e-5, 2e-5, err_msg=f"{run.__name__}({n})")


def _line(kind: int, x: Any, y: Any, n: int) -> Any:
    """The result of one line on (n, 3) tensors."""
    match kind:
        case 0:
            return (x * y + x).tanh()
        case 1:
            return x.softmax(0)
        case 2:
            return (x @ y.t() @ x).tanh()
        case 3:
            return x[: n // 2 + 1].sum(0) * 0.1 + y
        case 4:
            return wf.cat([x, y])[1 : n + 1]
        case 5:
            return x[wf.arange(n - 1, -1, -1)]
        case 6:
            changed = x.clone()
            changed[:2] = 0.25
            changed[:, 0].mul_(2.0)
            return changed
        case 7:
            return x.detach() - y.mean()
        case 8:
            (x * x).mean().backward(retain_graph=True)
            return y
        case _:
            (slope,) = wf.autograd.grad((x**3).sum(), x, create_graph=True)
            return slope.tanh()


def _run(lines: list[tuple[int, int, int]], n: int) -> list[np.ndarray[Any, Any]]:
    leaf = _drawn(n, 3, seed=1).requires_grad_()
    known = [leaf, leaf * 0.5]
    for kind, i, j in lines:
        x, y = known[i % len(known)], known[j % len(known)]
        if x.requires_grad or kind < 8:
            known.append(_line(kind, x, y, n))
    return _arrays((*known, *([] if leaf.grad is None else [leaf.grad])))


LINES = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@at_most(25)
@given(st.lists(LINES, min_size=2, max_size=8), st.lists(st.integers(1, 70), max_size=4))
def test_drawn_programs_that_change_structure_and_sizes(lines, sizes):
    for n in (*sizes, 1, 3):
        with interpreted():
            wanted = _run(lines, n)
        with stitched():
            found = _run(lines, n)
        for y, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(y, want, 1e-3, 1e-4)


def test_an_error_tells_the_sizes_of_its_call():
    with stitched():
        for n in (4, 5, 6, 9):
            total, x = wf.zeros(2), wf.arange(float(n))
            total.add_(1.0)
            bad = (x * 2)[wf.tensor([n + 2])]
            total.add_(bad)
            with pytest.raises(OutOfRangeError, match=f"0 <= index < {n}, got {n + 2}"):
                bad.tolist()
            assert total.tolist() == [1.0, 1.0]


def test_the_runs_of_few_structures_are_counted(monkeypatch):
    monkeypatch.setattr(tier_choice, "MOST", 8)
    monkeypatch.setattr(tier_choice, "_tiers", OrderedDict())
    monkeypatch.setattr(stitched_tier, "_shapes", {})
    monkeypatch.setattr(state, "_shortcut", [lambda _: False])  # a shortcut needs no tier
    hot, met = _drawn(3), []
    for n in range(3, 40):
        (_drawn(n) + 1.0).tolist()
        (hot * 3.0).tolist()  # stays known, as it keeps running
        met.append(type(next(reversed(tier_choice._tiers.values()))))
    assert len(tier_choice._tiers) == 8
    assert met == [Stitched] * 2 + [Compiling] + [Compiled] * 34


@pytest.mark.parametrize("tier_of", [stitched, interpreted])
def test_no_gradient_flows_through_what_shares_the_memory_of_a_value(tier_of):
    with tier_of():
        x = wf.full((3,), 3.0, requires_grad=True)
        (x * x.detach()).sum().backward()
        assert x.grad.tolist() == [3.0] * 3
        x.grad = None
        y = x * 2.0
        y.tolist()  # it is computed, and history
        (y * y.detach()).sum().backward()
        assert x.grad.tolist() == [12.0] * 3


@pytest.mark.parametrize(
    "call", [F.gelu, lambda x: x @ x.t(), lambda x: x.softmax(-1), lambda x: x[1:] * 2.0]
)
def test_the_estimated_time_of_a_list_grows_with_its_sizes(
    call: Callable[[wf.Tensor], wf.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    run = workspace.Workspace.run

    def timed(self: workspace.Workspace, first: int, last: int) -> Any:
        seen.append(self.ns(first, last))
        return run(self, first, last)

    with stitched():
        monkeypatch.setattr(workspace.Workspace, "run", timed)
        monkeypatch.setattr(state, "_shortcut", [lambda _: False])  # made by other tests
        for n in (2, 64, 512):
            x = _drawn(n, 64)
            call(x).numpy()
    small, middle, large = seen
    assert 16 <= middle / small <= 128
    assert 7 <= large / middle <= 65
