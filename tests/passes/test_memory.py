"""The arena planner, against a checker that executes the plan on labels."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.passes.memory import Plan, Step, check, plan


def training(depth: int, seed: int = 0) -> tuple[list[Step], dict[int, int]]:
    """The shape of a training step: values kept on the way forward, gradients on the way back."""
    draw = random.Random(seed)
    steps: list[Step] = []
    sizes: dict[int, int] = {}
    kept: list[int] = []

    def emit(size: int, reads: tuple[int, ...], shares: int | None = None) -> int:
        new = len(sizes)
        sizes[new] = size
        steps.append(Step(reads, (new,), () if shares is None else ((new, shares),)))
        return new

    for _ in range(depth):
        kept.append(emit(draw.choice([1, 2, 4, 8]) * 1024 * draw.randint(1, 50), tuple(kept[-1:])))
    g = emit(sizes[kept[-1]], (kept[-1],))
    for value in reversed(kept):
        emit(draw.randint(1, 2000), (value, g))
        g = emit(sizes[value], (value, g), g)
    return steps, sizes


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Step], dict[int, int]]:
    count = draw(st.integers(1, 40))
    sizes = {b: draw(st.integers(0, 1000)) for b in range(count)}
    steps: list[Step] = []
    ready: list[int] = []
    for new in range(count):
        reads = tuple(draw(st.lists(st.sampled_from(ready), max_size=3))) if ready else ()
        pairs = tuple((new, r) for r in reads if draw(st.booleans()))
        if draw(st.integers(0, 9)) == 0:
            reads = (*reads, 1000)  # lies outside the arena
        steps.append(Step(reads, (new,), pairs))
        ready.append(new)
    return steps, sizes


@given(programs())
def test_no_two_live_buffers_overlap(program):
    steps, sizes = program
    result = plan(steps, sizes)
    check(result, steps, sizes)
    assert result.total >= max(result.live_bytes())


@given(programs(), st.randoms())
def test_kept_buffers_are_there_at_the_end(program, draw):
    steps, sizes = program
    keep = draw.sample(sorted(sizes), min(3, len(sizes)))
    check(plan(steps, sizes, keep), [*steps, Step(tuple(keep), ())], sizes)


@given(programs(), st.randoms())
def test_the_checker_finds_a_broken_plan(program, draw):
    steps, sizes = program
    good = plan(steps, sizes)
    needed = {b for step in steps for b in step.reads if sizes.get(b)}
    if not needed:
        return
    victim = draw.choice(sorted(needed))
    life = good.lives[victim]
    # Another writer, at the victim's offset, between the victim's first writer and its last reader.
    intruder = 2000
    steps = [*steps[: life.last], Step((), (intruder,)), *steps[life.last :]]
    offsets = {**good.offsets, intruder: good.offsets[victim]}
    with pytest.raises(AssertionError, match="not there"):
        check(replace(good, offsets=offsets), steps, {**sizes, intruder: 1})


def test_the_checker_finds_what_lies_outside_or_askew():
    steps, sizes = [Step((), (0,)), Step((0,), (1,), ((1, 0),))], {0: 128, 1: 128}
    good = plan(steps, sizes)
    for offsets, fault in (
        ({0: 0, 1: 64}, "of 128"),
        ({0: -64, 1: 0}, "of 128"),
        ({0: 3, 1: 0}, "of 128"),
    ):
        with pytest.raises(AssertionError, match=fault):
            check(Plan(offsets, good.total, sizes, good.lives), steps, sizes)
    with pytest.raises(AssertionError, match="partly over"):
        check(Plan({0: 0, 1: 64}, 256, sizes, good.lives), steps, sizes)
    with pytest.raises(AssertionError, match="which it reads"):
        check(good, [steps[0], Step((0,), (1,))], sizes)
    with pytest.raises(AssertionError, match="one place"):
        check(good, [Step((), (0, 1))], sizes)


def test_in_place_where_the_last_reader_allows():
    chain = [Step((), (0,)), Step((0,), (1,), ((1, 0),)), Step((1,), (2,), ((2, 1),))]
    assert plan(chain, dict.fromkeys(range(3), 100)).total == 128
    assert plan(chain, {0: 100, 1: 200, 2: 200}).total == 384  # larger than its host
    late = [*chain, Step((0,), (3,))]
    assert plan(late, dict.fromkeys(range(4), 64)).total == 128  # 0 is read again


def test_not_in_place_where_another_position_reads_the_same_buffer():
    steps = [Step((), (0,)), Step((0, 0), (1,), ((1, 0),))]
    assert plan(steps, {0: 64, 1: 64}).total == 128
    both = [Step((), (0,)), Step((0, 0), (1,), ((1, 0), (1, 0)))]
    assert plan(both, {0: 64, 1: 64}).total == 64


def test_one_host_has_one_guest():
    steps = [Step((), (0,)), Step((0,), (1, 2), ((1, 0), (2, 0)))]
    result = plan(steps, dict.fromkeys(range(3), 64))
    check(result, steps, dict.fromkeys(range(3), 64))
    assert result.total == 128


def test_sizes_of_zero_and_an_empty_program():
    assert plan([], {}).total == 0
    assert str(plan([], {})) == "arena 0 B, 0 buffers, most alive at once 0 B (at step 0)"
    steps = [Step((), (0,)), Step((0,), (1,))]
    check(plan(steps, {0: 0, 1: 0}), steps, {0: 0, 1: 0})


@pytest.mark.parametrize("depth", [10, 100, 400])
def test_close_to_the_lower_bound(depth):
    steps, sizes = training(depth)
    result = plan(steps, sizes)
    check(result, steps, sizes)
    assert result.total <= 1.03 * max(result.live_bytes())


def test_a_plan_of_24_000_buffers_takes_less_than_a_second():
    steps, sizes = training(8000)

    def seconds() -> float:
        start = time.process_time()
        plan(steps, sizes)
        return time.process_time() - start

    assert any(seconds() < 1.0 for _ in range(9))  # 0.35 s on a quiet machine
    result = plan(steps, sizes)
    assert result.total <= 1.01 * max(result.live_bytes())


def test_what_is_kept_is_not_overwritten_by_the_last_step() -> None:
    steps = [Step((), (0,)), Step((0,), (1,), inplace=((1, 0),))]
    assert plan(steps, {0: 64, 1: 64}, keep=[0, 1]).hosts == {}
    assert plan(steps, {0: 64, 1: 64}, keep=[1]).hosts == {1: 0}
