"""Winograd convolution: the transform matrices, the kernels, and when they are chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from families import TARGETS
from guarded import run
from harness import Array, execute, references
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise
from strategies import at_most
from test_conv import Example, bound, lowered
from test_conv_epilogue import Tail, fused, momentum, relu, residual

from weft import config, ops
from weft.codegen import target as targets
from weft.codegen.convolution import conv as family
from weft.codegen.convolution.geometry import Correlation, forward_of, shapes_of, window_of
from weft.codegen.winograd import weight_gradient
from weft.codegen.winograd.plan import OUTPUTS, plan_of, sizes
from weft.codegen.winograd.transform import POINTS, Transform, transform
from weft.errors import MismatchError, ShapeError
from weft.ir.graph import Graph
from weft.passes.group import Group
from weft.runtime import oracle
from weft.runtime.engine import Function, State

KINDS = ("conv", "conv_grad_input", "conv_grad_weight")
SIDES = [(m, r) for m in OUTPUTS for r in (3, 5, 7) if m + r - 1 in POINTS]
FORMS = [*SIDES, *((r, m) for m, r in SIDES)]


def filtered(form: Transform, x: list[Fraction], w: list[Fraction]) -> list[Fraction]:
    """A correlation by the transforms, exactly."""

    def times(matrix: Any, values: list[Fraction]) -> list[Fraction]:
        return [
            sum((a * v for a, v in zip(row, values, strict=True)), Fraction(0)) for row in matrix
        ]

    products = [p * q for p, q in zip(times(form.source, x), times(form.weights, w), strict=True)]
    return times(form.result, products)


@pytest.mark.parametrize(("outputs", "taps"), FORMS)
def test_transforms_are_exact(outputs: int, taps: int) -> None:
    form = transform(outputs, taps)
    x = [Fraction(7 * i * i - 5 * i + 3, 2) for i in range(form.points)]
    w = [Fraction(3 - 4 * i, 5) for i in range(taps)]
    wanted = [sum((x[i + k] * w[k] for k in range(taps)), Fraction(0)) for i in range(outputs)]
    assert filtered(form, x, w) == wanted


def test_growth() -> None:
    assert [round(transform(*side).growth) for side in SIDES] == [8, 34, 115, 24, 87]


def by_transforms(group: Group, name: str, outputs: int) -> tuple[Any, targets.Target]:
    """The launches in squares of one size, and that they are."""
    with config.override(target=name, winograd=str(outputs)):
        target = targets.current()
    launches = lowered(group, target)
    if group.nodes[0].data_inputs[0].shape[0]:
        assert launches[-1].kernel.name.startswith(f"winograd{outputs}_")
    return launches, target


def check(example: Example, kind: str, name: str, outputs: int) -> None:
    """Equal to the reference within the transforms' growth, whatever the order of chunks."""
    group, feeds = example.build(kind)
    (out,) = group.outputs
    launches, target = by_transforms(group, name, outputs)
    expected = references(group, feeds)[out]
    if not launches:
        assert expected.size == 0
        return
    found = run(launches, feeds, out, target)
    tolerance = np.finfo(np.float32).eps * family.error_growth(group.nodes[0], target)
    error = np.abs(found.astype(np.float64) - expected).max(initial=0)
    assert error <= bound(group, feeds) * tolerance, (example, kind, error)
    for seed in (1, 2):
        again = run(launches, feeds, out, target, seed)
        assert again.tobytes() == found.tobytes(), "the result depends on the order of the chunks"


@st.composite
def examples(draw: st.DrawFn, taps: int) -> Example:
    channels = st.sampled_from([5, 8, 16, 17, 33, 48])  # fewer columns are another kind
    pair = st.tuples(st.integers(0, 4), st.integers(0, 4))
    extent = st.integers(1, 15)
    c, k = draw(channels), draw(channels)
    x = (draw(st.integers(1, 3)), draw(extent), draw(extent), c)
    return Example(
        x, (taps, taps, c, k), padding=draw(st.one_of(st.just("same"), st.tuples(pair, pair)))
    )


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("outputs", "taps"), SIDES)
def test_drawn(outputs: int, taps: int, kind: str, name: str) -> None:
    @at_most(5)
    @given(examples(taps))
    def drawn(example: Example) -> None:
        try:
            example.build(kind)
        except ShapeError:
            return
        check(example, kind, name, outputs)

    drawn()


CASES = {
    "blocks of their own": Example((40, 10, 9, 16), (3, 3, 16, 16), padding="same"),
    "no images": Example((0, 9, 8, 16), (3, 3, 16, 16), padding="same"),
    "shared by panels": Example((1, 14, 14, 40), (3, 3, 40, 200), padding="same"),
    "a volume of planes": Example((2, 3, 9, 8, 16), (1, 3, 3, 16, 32), padding="same"),
}  # fmt: skip


@pytest.mark.parametrize(("case", "outputs", "kind"), pairwise(CASES, OUTPUTS, KINDS))
def test_case(case: str, outputs: int, kind: str) -> None:
    check(CASES[case], kind, "native", outputs)


@pytest.mark.parametrize(
    ("tail", "outputs", "kind"), pairwise((relu, residual, momentum), OUTPUTS, KINDS)
)
def test_epilogue(tail: Tail, outputs: int, kind: str) -> None:
    group, feeds = fused(kind, "3x3", tail, "float32")
    launches, target = by_transforms(group, "native", outputs)
    terms = group.nodes[0].outputs[0]
    largest = references(group, {v: np.abs(a) for v, a in feeds.items()})[terms].max()
    growth = family.error_growth(group.nodes[0], target)
    margin = float(np.finfo(np.float32).eps * growth * largest)
    for inplace in (False, True):
        found = execute(launches, feeds, target, seed=1, inplace=inplace)
        for out, want in references(group, feeds).items():
            if out in found:
                np.testing.assert_allclose(found[out], want, rtol=1e-5, atol=margin)


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_weights_in_rounds(outputs: int) -> None:
    """Few windows at a time, as if the second cache were small."""
    group, feeds = CASES["blocks of their own"].build("conv_grad_weight")
    with config.override(winograd=str(outputs)):
        target = replace(targets.current(), l2=16 * 1024)
    launches = lowered(group, target)
    assert len(launches) > 3 * 3 + 1
    (out,) = group.outputs
    found = run(launches, feeds, out, target, 1)
    margin = np.finfo(np.float32).eps * family.error_growth(group.nodes[0], target)
    np.testing.assert_allclose(
        found, references(group, feeds)[out], rtol=0, atol=bound(group, feeds) * margin
    )


def problem_of(example: Example) -> Correlation:
    group, _ = example.build("conv")
    node = group.nodes[0]
    x, w, y = shapes_of(node)
    return forward_of(x, w, y, window_of(node, w), node.outputs[0].dtype)


@pytest.mark.parametrize(
    "other",
    [
        {"strides": (2, 2)},
        {"dilation": (2, 2)},
        {"w": (3, 3, 16, 32), "groups": 2},
        {"w": (5, 3, 32, 32)},
        {"w": (9, 9, 32, 32)},
        {"w": (4, 4, 32, 32)},
        {"w": (1, 1, 32, 32)},
        {"dtype": "float64"},
    ],
)
def test_neighbors_along_both_axes_only(other: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"x": (1, 12, 12, 32), "w": (3, 3, 32, 32), "padding": "same"}
    target = replace(targets.current(), winograd="auto")
    assert sizes(problem_of(Example(**plain)), target) == OUTPUTS
    assert sizes(problem_of(Example(**{**plain, **other})), target) == ()


def test_chosen_where_it_pays() -> None:
    deep = problem_of(Example((4, 28, 28, 256), (3, 3, 256, 256), padding="same"))
    first = problem_of(Example((4, 64, 64, 3), (3, 3, 3, 64), padding="same"))
    target = targets.current()
    assert plan_of(deep, target) is not None
    assert plan_of(first, target) is None
    assert weight_gradient.plan_of(deep, target) is not None
    assert weight_gradient.plan_of(first, target) is None
    with config.override(winograd="off"):
        assert plan_of(deep, targets.current()) is None
        assert weight_gradient.plan_of(deep, targets.current()) is None


def test_kept_weights_change_no_bits() -> None:
    """The algorithm follows from the shapes; how it is blocked may differ."""
    target = replace(targets.current(), winograd="auto")
    for size in (8, 12, 18):
        example = Example((1, size, size, 256), (3, 3, 256, 256), padding="same")
        group, feeds = example.build("conv")
        (out,) = group.outputs
        kept = replace(group, lasting=frozenset(group.inputs[1:]))
        found = [run(lowered(g, target), feeds, out, target).tobytes() for g in (group, kept)]
        assert found[0] == found[1], size


def _program(example: Example) -> Callable[[], Array]:
    graph = Graph()
    with graph.as_default():
        x, w = (ops.placeholder(dtype="float32", shape=s) for s in (example.x, example.w))
        y = ops.conv(x, w, padding="same")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in (example.x, example.w)]
    return lambda: Function(graph, [y], feeds=[x, w])(arrays, State())[0]


def test_reference_knows_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    call = _program(Example((1, 12, 12, 64), (3, 3, 64, 32), padding="same"))
    with config.override(reference=True, winograd="4"):
        call()
    monkeypatch.setattr(oracle, "TOLERANCE", {"float32": 1e-9})
    with config.override(reference=True, winograd="4"):
        call()  # the transforms' own tolerance holds
    with config.override(reference=True, winograd="off"), pytest.raises(MismatchError):
        call()
