"""Arguments and edge cases that programs written for PyTorch use: they mean the same here."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, draw  # noqa: E402

SAME = {
    "flip by name": lambda m, x: m.flip(x, dims=(0, 1)),
    "flip of no axis": lambda m, x: x.flip(dims=()),
    "diff of no order": lambda m, x: m.diff(x, 0),
    "a correction that is no whole number": lambda m, x: m.var(x, dim=1, correction=1.3),
    "std_mean of all": lambda m, x: m.std_mean(x, True),
    "var_mean of all, biased": lambda m, x: m.var_mean(x, False),
    "cdist that counts": lambda m, x: m.cdist(x, x.round(), p=0),
    "cdist by a way": lambda m, x: m.cdist(x, x[:2] + 1, 2.0, "use_mm_for_euclid_dist"),
    "circular padding that cuts": lambda m, x: m.nn.functional.pad(
        x[None], (-1, 1), mode="circular"
    ),
    "reflection of an empty batch": lambda m, x: m.nn.functional.pad(
        x[:0, None], (1, 2), mode="reflect"
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_of_floating_numbers(what):
    agree(SAME[what], draw((3, 4), -2, 2, 0))


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_extremes_of_truth_values(name):
    agree(lambda m, x: getattr(m, name)(x), np.array([[True, False], [False, False]]), grad=False)


@pytest.mark.parametrize("bounds", [(0.0, -8.000001, -4.0), (-0.9, 2.1, 2.0), (0.1, -7.9, -4)])
def test_ranges_of_whole_numbers_cut_their_bounds(bounds):
    assert (
        wf.arange(*bounds, dtype=wf.int64).tolist()
        == torch.arange(*bounds, dtype=torch.int64).tolist()
    )
    with pytest.raises(wf.errors.ShapeError, match="whole step"):
        wf.arange(0, 3, 0.5, dtype=wf.int64)


def test_even_steps_of_whole_numbers_cut_their_bounds():
    for ours, theirs in ((wf.linspace, torch.linspace), (wf.logspace, torch.logspace)):
        found = ours(0.5, 2.7, 5, dtype=wf.int64)
        assert found.tolist() == theirs(0.5, 2.7, 5, dtype=torch.int64).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: m.ones(2, 3) @ m.ones(2, 3),
        lambda m: m.ones(2, 3).reshape(4),
        lambda m: m.ones(2) + m.ones(3),
        lambda m: m.ones(2) << 1,
        lambda m: m.einsum("ij,ij->k", m.ones(2, 2), m.ones(2, 2)),
    ],
)
def test_errors_are_those_that_programs_catch(wrong):
    for m in (torch, wf):
        with pytest.raises(RuntimeError):
            wrong(m)


def test_extremes_along_a_dimension_under_either_name():
    agree(lambda m, x: x.max(axis=1), draw((3, 4), -2, 2, 0))
    agree(lambda m, x: m.min(x, axis=0), draw((3, 4), -2, 2, 0))
    agree(lambda m, x: m.std_mean(x, axis=(0, 1)), draw((3, 4), -2, 2, 0))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_equal_numbers_share_the_gradient(name):
    x, y = np.array([1.0, 2, np.inf]), np.array([2.0, 2, np.inf])
    agree(lambda m, x, y: getattr(m, name)(x, y), x, y)
    agree(lambda m, x, y: m.clamp(x, min=y), x, np.array([1.0, 3.0, 3.0]))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce, include_self):
    index = np.array([[0, 2, 2, 0], [1, 1, 1, 0]])
    x, source = draw((3, 4), -2, 2, 0), draw((2, 4), -2, 2, 1)

    def reduced(m, x, index, source):
        return x.scatter_reduce(0, index, source, reduce, include_self=include_self)

    agree(reduced, x, index, source)
    whole = [(a * 5).astype(np.int64) for a in (x, source)]
    agree(reduced, whole[0], index, whole[1], grad=False)


def test_powers():
    agree(lambda m, y: 0**y, np.array([-2.0, -1.0, 0.0, 1.0]))
    agree(lambda m, x, y: x**y, np.array([0.0, 0.0, 2.0]), np.array([0.3, -0.3, -1.0]))
    for m in (torch, wf):
        with pytest.raises(RuntimeError):
            m.tensor([1, 2]) ** -2
