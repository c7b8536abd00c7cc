"""Statistics, integrals, combinations and scatter functions against PyTorch."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, draw, seeds  # noqa: E402
from weft.errors import DTypeError, OutOfRangeError, ShapeError  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of names that may change
]
few = at_most(3, phases=[Phase.generate])
sizes = st.integers(1, 5)


def gaps(shape, seed):
    """Numbers of which some are NaN."""
    x = draw(shape, seed=seed)
    return np.where(np.random.default_rng(seed).random(shape) < 0.4, np.float32(np.nan), x)


@given(sizes, sizes, st.booleans(), seeds)
@few
def test_orders(m, n, keep, seed):
    x = gaps((m, n), seed)
    agree(lambda t, x: (t.nanmedian(x), x.nanmedian()), x, grad=False)
    agree(lambda t, x: t.nanmedian(x, 1, keepdim=keep).values, x, grad=False)
    full = draw((m, n), seed=seed)
    agree(lambda t, x: (x.nanmedian(), x.nanmedian(0, keepdim=keep)), full)
    for method in ("linear", "lower", "higher", "nearest", "midpoint"):
        agree(lambda t, x, k=method: t.nanquantile(x, 0.3, 1, keep, interpolation=k), x, grad=False)
    agree(lambda t, x: t.nanquantile(x, t.tensor([0.2, 0.7]), 0), x, grad=False)
    agree(lambda t, x: x.nanquantile(0.4, keepdim=True), full)
    whole = np.random.default_rng(seed).integers(0, 3, (m, n))
    agree(lambda t, x: (t.mode(x, 0, keepdim=keep), t.mode(x)), whole)
    agree(lambda t, x: (t.mode(x)[0], t.mode(x[0, 0])), full)


@given(sizes, st.integers(2, 5), st.integers(0, 1), seeds)
@few
def test_covariances(rows, columns, correction, seed):
    x = draw((rows, columns), seed=seed)
    rng = np.random.default_rng(seed)
    often, much = rng.integers(1, 4, columns), rng.uniform(0.5, 2, columns).astype(np.float32)
    agree(lambda t, x: (t.cov(x), x.cov(correction=correction), t.cov(x[0])), x, rtol=1e-3)
    agree(
        lambda t, x, f, a: t.cov(x, correction=correction, fweights=f, aweights=a),
        x, often, much, grad=False, rtol=1e-3,
    )  # fmt: skip
    agree(lambda t, x: (t.corrcoef(x), x[0].corrcoef()), x, grad=False, rtol=1e-3)


@given(sizes, sizes, st.integers(-2, 1), seeds)
@few
def test_integrals(m, n, dim, seed):
    y = draw((m, n), seed=seed)
    x = np.sort(draw((y.shape[dim],), seed=seed))
    for name in ("trapezoid", "trapz", "cumulative_trapezoid"):
        agree(lambda t, y, f=name: getattr(t, f)(y, dim=dim), y)
        agree(lambda t, y, x, f=name: getattr(t, f)(y, x, dim=dim), y, x)
        agree(lambda t, y, f=name: getattr(t, f)(y, dx=0.5, dim=dim), y)


@given(sizes, sizes, st.integers(0, 3), st.booleans(), seeds)
@few
def test_combinations(m, n, r, repeated, seed):
    a, b = draw((m,), seed=seed), draw((n,), seed=seed + 1)
    agree(lambda t, x: t.combinations(x, r or 1, repeated), a)
    agree(lambda t, x, y: (t.cartesian_prod(x, y, x), t.cartesian_prod(x)), a, b)
    x = np.random.default_rng(seed).normal(size=(m, n))
    agree(lambda t, x: t.histogram(x, 4), x, grad=False)
    how = {"range": (-1.0, 1.0), "density": True}
    agree(lambda t, x: t.histogram(x, 3, weight=x.square(), **how), np.append(x, 0.1), grad=False)


@given(sizes, sizes, st.integers(-2, 1), seeds)
@few
def test_replaced_parts(m, n, dim, seed):
    x, row = draw((m, n), seed=seed), draw((m, n), seed=seed + 1)
    one = np.take(row, 0, dim)
    agree(lambda t, x, y: (t.select_scatter(x, y, dim, -1), x.select_scatter(y, dim, 0)), x, one)
    agree(lambda t, x, y: t.slice_scatter(x, y[::2], 0, 0, None, 2), x, row)
    agree(lambda t, x, y: x.diagonal_scatter(t.diagonal(y)), x, row)
    places = np.random.default_rng(seed).permutation(m * n)[:2]
    two = draw((len(places),), seed=seed)
    agree(lambda t, x, i, y: (t.put(x, i, y), x.put(i, y, accumulate=True)), x, places, two)
    agree(lambda t, x, i, y: x.clone().put_(i, y), x, places, two)
    rows = np.random.default_rng(seed).permutation(m)
    agree(lambda t, x, i, y: t.index_put(x, (i,), y), x, rows, row)
    agree(lambda t, x, i, y: x.index_put([i], y, accumulate=True), x, rows, row)
    for how in ("prod", "mean", "amax", "amin"):
        agree(lambda t, x, i, y, k=how: x.index_reduce(0, i, y, k), x, rows, row, grad=False)
    agree(
        lambda t, x, i, y: x.clone().index_reduce_(0, i, y, "amax", include_self=False),
        x, rows, row, grad=False,
    )  # fmt: skip
    agree(lambda t, x: t.as_strided(x, (2, m), (0, n), n - 1), x)
    agree(lambda t, x, y: x.as_strided_scatter(y, (m,), (n,)), x, row[:, 0].copy(), grad=False)
    agree(lambda t, x: (t.diagflat(x, 1), *x.split_with_sizes([1, m - 1]), t.row_stack((x, x))), x)
    agree(lambda t, x: (*x[None].dsplit(1), *x.hsplit(1), *t.vsplit(x, 1)), x)


def test_filling():
    agree(lambda t, x, v: (t.fill(x, v), t.fill(x, 2)), np.ones((2, 3)), np.float64(0.5))


ERRORS = [
    (lambda: wf.cov(wf.ones(1, 1, 1)), ShapeError, "cov: expected rank 2 or less"),
    (lambda: wf.cov(wf.ones(3), fweights=wf.ones(3)), DTypeError, "fweights: expected an integer"),
    (lambda: wf.cov(wf.ones(3), aweights=wf.ones(3).int()), DTypeError, "aweights: expected a flo"),
    (lambda: wf.cov(wf.ones(3), aweights=wf.ones(1)), ShapeError, "one for each of 3 observations"),
    (lambda: wf.cov(wf.ones(3), aweights=wf.ones(3, 3)), ShapeError, r"got shape \(3, 3\)"),
    (
        lambda: wf.cov(wf.ones(2), fweights=wf.tensor([1, -1])).item(),
        OutOfRangeError,
        "weights that are not negative, got 1 other",
    ),
    (lambda: wf.cov(wf.ones(2) > 0), DTypeError, "cov: expected numbers, got bool"),
    (lambda: wf.diff(wf.ones(2), -1), ShapeError, "diff: expected n of 0 or more, got -1"),
    (lambda: wf.combinations(wf.ones(1, 1)), ShapeError, "combinations: expected a vector"),
    (lambda: wf.mode(wf.ones(0, 2), 0), ShapeError, "mode: expected at least one element"),
    (lambda: wf.select_scatter(wf.ones(2, 2), wf.ones(3), 0, 0), ShapeError, "a source of shape"),
    (lambda: wf.as_strided(wf.ones(3), (2,), (3,)), OutOfRangeError, "positions from 0 to 2"),
    (lambda: wf.as_strided(wf.ones(3), (2,), ()), ShapeError, "a stride for each size"),
    (lambda: wf.put(wf.ones(3), wf.tensor([0]), wf.ones(2)), ShapeError, "as many elements as"),
]


@pytest.mark.parametrize(("run", "kind", "text"), ERRORS)
def test_errors_say_what_is_expected(run, kind, text):
    with pytest.raises(kind, match=text):
        run()


def test_covariances_while_casts_are_automatic():
    x = draw((3, 5)).astype(np.float32)
    with wf.autocast(), torch.autocast("cpu"):
        pairs = [
            (wf.cov(wf.tensor(x)), torch.cov(torch.tensor(x))),
            (wf.corrcoef(wf.tensor(x)), torch.corrcoef(torch.tensor(x))),
        ]
    for found, expected in pairs:
        assert str(expected.dtype) == f"torch.{found.dtype}"
        np.testing.assert_allclose(found.float().numpy(), expected.float().numpy(), rtol=1e-2)
