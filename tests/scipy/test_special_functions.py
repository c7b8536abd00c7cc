"""Special functions and densities: known values, and gradients against finite differences."""

import math

import exact
import numpy as np
import pytest

import weft.numpy as wnp
from tests.numpy.numpy_case import check_gradient, same
from weft import config
from weft.errors import DTypeError, ShapeError
from weft.numpy import linalg as numpy_linalg
from weft.scipy import linalg, signal, special, stats

RNG = np.random.default_rng(0)
X = RNG.uniform(0.3, 2.0, (2, 3))
Y = RNG.uniform(0.3, 2.0, (3,))


def each(function, *xs):
    return np.vectorize(function)(*xs)


KNOWN = [
    ("gamma", math.gamma), ("gammaln", math.lgamma), ("rgamma", lambda x: 1 / math.gamma(x)),
    ("erf", math.erf), ("erfc", math.erfc), ("expit", lambda x: 1 / (1 + math.exp(-x))),
    ("log_expit", lambda x: -math.log1p(math.exp(-x))),
    ("entr", lambda x: -x * math.log(x)), ("ndtr", lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    ("log_ndtr", lambda x: math.log(math.erfc(-x / math.sqrt(2)) / 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), KNOWN)
def test_known_values(name, expected):
    same(getattr(special, name)(X), each(expected, X))
    check_gradient(getattr(special, name), X)


@pytest.mark.parametrize("name", ["digamma", "i0", "i1", "i0e", "i1e", "erfinv", "logit"])
def test_gradients_of_others(name):
    check_gradient(getattr(special, name), X / 2.5)


def test_gamma_of_negative_numbers_has_a_sign():
    x = np.array([-0.5, -1.5, -2.5, 3.0])
    same(special.gamma(x), each(math.gamma, x))
    assert special.gammasgn(x).tolist() == [-1, 1, -1, 1]
    same(special.beta(2.5, -0.5), np.float64(math.gamma(2.5) * math.gamma(-0.5) / math.gamma(2.0)))


def test_of_two():
    expected = each(lambda a, b: math.gamma(a) * math.gamma(b) / math.gamma(a + b), X, Y)
    same(special.beta(X, Y), expected)
    same(special.betaln(X, Y), np.log(expected))
    check_gradient(special.beta, X, Y)
    same(special.xlogy(np.array([0.0, 2.0]), np.array([0.0, 3.0])), np.array([0, 2 * np.log(3)]))
    zeros = (np.array([0.0, 2.0, 0.0, 0.0]), np.array([-1.0, 3.0, np.nan, np.inf]))
    same(special.xlog1py(*zeros), np.array([0, 2 * np.log(4), np.nan, 0]))
    check_gradient(special.xlog1py, X, Y)


def test_polygamma():
    same(special.polygamma(1, 1.0), np.float64(math.pi**2 / 6))
    same(special.polygamma(0, X), special.digamma(X).numpy())
    check_gradient(lambda x: special.polygamma(2, x), X)
    expected = sum(each(math.lgamma, X + 1 - i / 2) for i in range(3)) + 1.5 * np.log(np.pi)
    same(special.multigammaln(X + 1, 3), expected)
    with pytest.raises(DTypeError, match=r"polygamma: expected an integer n, got 1.5"):
        special.polygamma(1.5, X)


def test_far_tails_keep_their_digits():
    assert float(special.log_ndtr(-30.0)) == pytest.approx(-454.3212439563417, rel=1e-13)
    check_gradient(special.log_ndtr, np.array([-30.0, -9.9, -10.1, 3.0]))


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}])
def test_logsumexp(options):
    same(special.logsumexp(X, **options), np.log(np.sum(np.exp(X), **options)))
    b = RNG.uniform(0.5, 2, X.shape)
    same(special.logsumexp(X, b=b, **options), np.log(np.sum(b * np.exp(X), **options)))
    check_gradient(lambda x, b: special.logsumexp(x, b=b, **options), X, b)


def test_softmax():
    soft = np.exp(X) / np.exp(X).sum()
    same(special.softmax(X), soft)
    same(special.log_softmax(X), np.log(soft))
    same(special.softmax(X, axis=1), np.exp(X) / np.exp(X).sum(1, keepdims=True))


DENSITIES = [
    (stats.norm, (0.5, 1.5), (-40, 40)), (stats.t, (3.0, 0.5, 1.5), (-4000, 4000)),
    (stats.gamma, (2.5,), (1e-9, 60)), (stats.chi2, (3.0,), (1e-9, 90)),
    (stats.beta, (2.5, 1.5), (1e-9, 1 - 1e-9)),
]  # fmt: skip


@pytest.mark.parametrize(("law", "parameters", "limits"), DENSITIES)
def test_densities_integrate_to_one(law, parameters, limits):
    x = np.linspace(*limits, 400001)
    assert float(wnp.trapezoid(law.pdf(x, *parameters), x)) == pytest.approx(1, abs=1e-4)
    at = np.array([0.3, 0.6])
    arrays = [np.full((2,), p) for p in parameters]
    check_gradient(law.logpdf, at, *arrays)
    check_gradient(law.pdf, at, *arrays)


def test_normal_distribution():
    z = np.array([-1.5, 0.2, 2.0])
    same(stats.norm.cdf(z), each(lambda v: math.erfc(-v / math.sqrt(2)) / 2, z))
    same(stats.norm.sf(z) + stats.norm.cdf(z), np.ones(3))
    same(wnp.exp(stats.norm.logcdf(z)), stats.norm.cdf(z).numpy())
    same(wnp.exp(stats.norm.logsf(z)), stats.norm.sf(z).numpy())
    check_gradient(stats.norm.logcdf, z, np.full(3, 0.1), np.full(3, 1.2))


def test_poisson_distribution():
    total = wnp.sum(stats.poisson.pmf(np.arange(60.0), 7.5))
    assert float(total) == pytest.approx(1, abs=1e-12)
    check_gradient(lambda mu: stats.poisson.logpmf(np.array([0.0, 3.0]), mu), np.array([1.5, 2.5]))


def test_several_variables():
    cov = np.diag([1.0, 4.0])
    x = np.array([[0.5, 1.0], [0.0, -1.0]])
    expected = stats.norm.logpdf(x[:, 0]) + stats.norm.logpdf(x[:, 1], 0.0, 2.0)
    same(stats.multivariate_normal.logpdf(x, np.zeros(2), cov), expected.numpy())
    check_gradient(stats.multivariate_normal.pdf, x, np.array([0.1, 0.2]), cov + 0.1)
    same(
        stats.multivariate_normal.logpdf(x, np.zeros(2), cov, allow_singular=True),
        expected.numpy(),
    )
    entropy = 0.5 * np.log(np.linalg.det(2 * np.pi * np.e * cov))
    same(stats.multivariate_normal.entropy(np.zeros(2), cov), entropy)
    parts, alpha = np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.0, 3.0])
    scale = math.gamma(6.5) / (math.gamma(1.5) * math.gamma(2.0) * math.gamma(3.0))
    same(stats.dirichlet.pdf(parts, alpha), np.float64(scale * np.prod(parts ** (alpha - 1))))
    check_gradient(stats.dirichlet.logpdf, parts, alpha)
    assert stats.dirichlet.rvs(alpha, 5).shape == (5, 3)


def test_triangular_and_sylvester_systems():
    a, b = RNG.normal(size=(3, 3)) + 3 * np.eye(3), RNG.normal(size=(3,))
    same(linalg.solve_triangular(a, b), np.linalg.solve(np.triu(a), b))
    same(linalg.solve_triangular(a, b, lower=True), np.linalg.solve(np.tril(a), b))
    same(linalg.solve_triangular(a, b, trans="T"), np.linalg.solve(np.triu(a).T, b))
    unit = np.triu(a, 1) + np.eye(3)
    same(linalg.solve_triangular(a, b, unit_diagonal=True), np.linalg.solve(unit, b))
    check_gradient(linalg.solve_triangular, a, b)
    c, q = RNG.normal(size=(2, 2)), RNG.normal(size=(3, 2))
    x = linalg.solve_sylvester(a, c, q)
    same(wnp.asarray(a) @ x + x @ wnp.asarray(c), q)
    assert linalg.inv is numpy_linalg.inv


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    a, b = RNG.normal(size=7), RNG.normal(size=3)
    same(signal.convolve(a, b, mode=mode), np.convolve(a, b, mode))
    x, w = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3))
    check_gradient(lambda x, w: signal.convolve(x, w, mode=mode), x, w)
    rows = signal.convolve(x, w, axes=((0,), (0,)), dot_axes=((1,), (1,)), mode=mode)
    same(rows, sum(np.convolve(x[:, i], w[:, i], mode) for i in range(3)))


def test_a_convolution_of_no_mode():
    with pytest.raises(ShapeError, match="convolve: expected mode full, same or valid, got 'odd'"):
        signal.convolve([1.0], [1.0], mode="odd")


@pytest.mark.parametrize("below", [0, 1, 2])
@pytest.mark.parametrize("above", [0, 1, 2])
def test_banded_systems(below, above):
    n = 5
    ab = RNG.normal(size=(below + above + 1, n))
    ab[above] += 4.0
    a = sum(
        np.diagflat(row[max(k, 0) : n + min(k, 0)], k)
        for k, row in zip(range(above, -below - 1, -1), ab, strict=True)
    )
    for b in RNG.normal(size=n), RNG.normal(size=(n, 2)):
        same(linalg.solve_banded((below, above), ab, b), np.linalg.solve(a, b))
        check_gradient(lambda ab, b: linalg.solve_banded((below, above), ab, b), ab, b)
    with pytest.raises(ShapeError, match=f"expected {below + above + 2} diagonals"):
        linalg.solve_banded((below + 1, above), ab, np.ones(n))


EXACT_ONE = {**exact.SPECIAL, "expit": exact.ONE["sigmoid"], "logit": exact.ONE["logit"]}


@pytest.mark.parametrize("dtype", exact.DTYPES)
def test_values_are_exact_at_every_size(dtype):
    """Every other type compiled: that both tiers give the same bits is tested elsewhere."""
    kind = exact.DTYPES[dtype]
    with config.override(compile=list(exact.DTYPES).index(dtype) % 2 == 0):
        for table, args in (
            (EXACT_ONE, [exact.points(kind)]), (exact.SPECIAL_TWO, exact.pairs(kind))
        ):  # fmt: skip
            found = {n: getattr(special, n)(*args) for n in table}
            for name, y in found.items():
                limit = exact.LOOSE.get(name, 1000) if kind is np.float64 else 6
                exact.check(
                    name, y.array, table[name], args, limit, where=exact.defined(name, args)
                )
