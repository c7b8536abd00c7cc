"""Drawn programs, another one at every step, have the same bits in every tier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from drawn_loops import Loops
from tiers import BOTH, COMPILED, STITCHED, Array, assert_same, in_tier

import weft as wf
from weft.codegen.target import portable
from weft.errors import MismatchError
from weft.library.generator import LibraryGenerator
from weft.nn import functional as F
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request
from weft.runtime import finish
from weft.runtime.memory.state import State

Draw = np.random.Generator
ROWS, WIDTH, STEPS = 37, 24, 8
Step = Callable[[Draw, wf.Tensor, wf.Tensor], wf.Tensor]


def _image(x: wf.Tensor) -> wf.Tensor:
    return x.reshape(1, ROWS, 4, WIDTH // 4)


def _convolved(d: Draw, h: wf.Tensor, w: wf.Tensor) -> wf.Tensor:
    kernel = (
        w[:, :9].reshape(WIDTH, 1, 3, 3)[:3] if d.random() < 0.5 else w[:2, :9].reshape(2, 1, 3, 3)
    )
    y = F.conv2d(h.reshape(ROWS, 1, 4, WIDTH // 4), kernel, padding=1)
    return h + y.mean((1, 2, 3)).unsqueeze(1)


# Each takes what was computed so far, and weights; shapes stay.
CALLS: tuple[Step, ...] = (
    lambda d, h, w: h @ w,
    lambda d, h, w: h @ w.mT * 0.5,
    lambda d, h, w: F.gelu(h),
    lambda d, h, w: h.tanh() * h + 1.0,
    lambda d, h, w: h.softmax(int(d.integers(2))),
    lambda d, h, w: h - h.mean(int(d.integers(2)), keepdim=True),
    lambda d, h, w: h / (h.var(int(d.integers(2)), keepdim=True) + 1.0).sqrt(),
    lambda d, h, w: F.layer_norm(h, (WIDTH,)),
    lambda d, h, w: F.batch_norm(h, None, None, training=True),
    lambda d, h, w: F.group_norm(_image(h), 1).reshape(ROWS, WIDTH),
    lambda d, h, w: h + h.cumsum(int(d.integers(2))) / 10.0,
    lambda d, h, w: h.exp().log1p() + w.sum(0),
    lambda d, h, w: wf.cat([h[:, 5:], h[:, :5].sin()], 1),
    lambda d, h, w: h + (h.mT @ h).sigmoid().sum(1),
    lambda d, h, w: F.dropout(h, 0.2),
    lambda d, h, w: wf.logaddexp(h, h.flip(0)),
    lambda d, h, w: h[wf.from_numpy(d.integers(0, ROWS, ROWS))],
    lambda d, h, w: h * w.norm() / 5.0,
    lambda d, h, w: F.scaled_dot_product_attention(h[None], h[None], h[None])[0],
    _convolved,
)  # fmt: skip


def run(seed: int, calls: tuple[Step, ...] = CALLS) -> list[list[Array]]:
    """Weights after some steps; every other step repeats what an earlier one called."""
    wf.manual_seed(seed)
    rng = np.random.default_rng(seed)
    ws = [wf.from_numpy(rng.standard_normal((WIDTH, WIDTH)).astype("f") / 5) for _ in range(2)]
    found: list[list[Array]] = []
    for step in range(STEPS):
        # The last steps are one program: first from the library, then compiled.
        d = np.random.default_rng([seed, min(step, STEPS // 2)])
        ws = [w.detach().requires_grad_() for w in ws]
        h = wf.from_numpy(d.standard_normal((ROWS, WIDTH)).astype("f"))
        for i in d.integers(len(calls), size=int(d.integers(3, 8))):
            h = calls[i](d, h, ws[int(d.integers(2))])
            if d.random() < 0.1:
                h.sum().item()  # splits the program
        loss = h.square().mean() + ws[0].mean() + ws[1].mean()
        loss.backward()
        ws = [w - 0.1 * w.grad for w in ws]
        found.append([w.detach().numpy().copy() for w in ws] + [loss.detach().numpy().copy()])
    return found


def check(seed: int, *others: tuple[str, int]) -> None:
    with in_tier(STITCHED):
        expected = run(seed)
    for name, threads in others:
        with in_tier(name, threads):
            assert_same(expected, run(seed))


@pytest.mark.parametrize("seed", range(2))
def test_programs_that_change_at_every_step(seed: int) -> None:
    check(seed, (BOTH, 2), (COMPILED, 1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 40))
def test_more_programs_that_change_at_every_step(seed: int) -> None:
    ways = (STITCHED, 2), (BOTH, 1), (COMPILED, 2)
    check(seed, *[way for number, way in enumerate(ways) if number != seed % 3])


def test_a_call_that_differs_in_the_last_bit_is_noticed() -> None:
    found = []
    for factor in (np.float32(1), np.nextafter(np.float32(1), np.float32(2))):
        with in_tier(STITCHED):
            found.append(run(0, (lambda d, h, w, f=float(factor): h @ w * f,)))
    with pytest.raises(MismatchError):
        assert_same(*found)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_loops_have_the_same_bits_on_library_kernels(seed: int) -> None:
    """With their gradients, whose loops read stacks of as many rows as there were iterations."""
    loops = Loops(seed, depth=2)
    loops.differentiate(seed % 2)
    request = Request(loops.graph, tuple(loops.results), (), tuple(loops.feeds))
    step = optimize(specialize(request, [x.type for x in loops.feeds], {}, {}))
    kernels = LibraryGenerator(portable())
    program = finish.of_library_kernels(
        step, 2, kernels, kernels.has, kernels.addresses, portable()
    )()
    found = program.run(loops.arrays, State())
    for got, want in zip(found, loops.compiled(1), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
