"""Samples of `weft.distributions`: their laws beside SciPy, gradients, seeds, transformations."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import weft as wf

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")
D = wf.distributions
COUNT = 4000


def of(name, *shape):
    """A distribution of SciPy by name."""
    return getattr(stats, name)(*shape)


NUMBERS = {
    "Beta": (lambda: D.Beta(0.5, 2.0), of("beta", 0.5, 2.0)),
    "Beta, small": (lambda: D.Beta(0.05, 0.1), of("beta", 0.05, 0.1)),
    "Cauchy": (lambda: D.Cauchy(1.0, 2.0), of("cauchy", 1.0, 2.0)),
    "Chi2": (lambda: D.Chi2(3.0), of("chi2", 3.0)),
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(0.9), of("truncexpon", 1.0)),
    "Exponential": (lambda: D.Exponential(2.0), of("expon", 0, 0.5)),
    "FisherSnedecor": (lambda: D.FisherSnedecor(3.0, 7.0), of("f", 3.0, 7.0)),
    "Gamma": (lambda: D.Gamma(0.3, 2.0), of("gamma", 0.3, 0, 0.5)),
    "Gamma, large": (lambda: D.Gamma(1e4, 1.0), of("gamma", 1e4)),
    "GeneralizedPareto": (lambda: D.GeneralizedPareto(1.0, 2.0, 0.3), of("genpareto", 0.3, 1, 2)),
    "Gumbel": (lambda: D.Gumbel(1.0, 2.0), of("gumbel_r", 1.0, 2.0)),
    "HalfCauchy": (lambda: D.HalfCauchy(2.0), of("halfcauchy", 0, 2.0)),
    "HalfNormal": (lambda: D.HalfNormal(2.0), of("halfnorm", 0, 2.0)),
    "InverseGamma": (lambda: D.InverseGamma(3.0, 2.0), of("invgamma", 3.0, 0, 2.0)),
    "Laplace": (lambda: D.Laplace(1.0, 2.0), of("laplace", 1.0, 2.0)),
    "LogNormal": (lambda: D.LogNormal(0.5, 0.8), of("lognorm", 0.8, 0, math.exp(0.5))),
    "Normal": (lambda: D.Normal(1.0, 2.0), of("norm", 1.0, 2.0)),
    "Pareto": (lambda: D.Pareto(2.0, 3.0), of("pareto", 3.0, 0, 2.0)),
    "StudentT": (lambda: D.StudentT(3.0, 1.0, 2.0), of("t", 3.0, 1.0, 2.0)),
    "Uniform": (lambda: D.Uniform(-1.0, 3.0), of("uniform", -1.0, 4.0)),
    "VonMises": (lambda: D.VonMises(wf.tensor(0.0), wf.tensor(2.0)), of("vonmises", 2.0)),
    "VonMises, flat": (lambda: D.VonMises(wf.tensor(0.0), wf.tensor(1e-4)), of("vonmises", 1e-4)),
    "Weibull": (lambda: D.Weibull(2.0, 1.5), of("weibull_min", 1.5, 0, 2.0)),
}
EXACT = {"Beta, small", "Gamma, large"}  # float32 has too few numbers near 1, and near 10000
WITHOUT_LAW = {"ContinuousBernoulli"}  # SciPy has no such distribution: its own cdf is checked


@pytest.mark.parametrize("dtype", [wf.float32, wf.float64])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_follow_their_law(name, dtype):
    make, law = NUMBERS[name]
    if dtype is wf.float32 and name in EXACT:
        return
    wf.manual_seed(len(name))
    before = wf.get_default_dtype()
    wf.set_default_dtype(dtype)
    try:
        d = make()
        x = d.sample((COUNT,))
    finally:
        wf.set_default_dtype(before)
    assert x.dtype is dtype
    cdf = (lambda v: d.cdf(wf.tensor(v, dtype=dtype)).numpy()) if name in WITHOUT_LAW else law.cdf
    assert stats.kstest(x.numpy(), cdf).pvalue > 1e-3
    if name not in WITHOUT_LAW:  # and so does the density, on the whole range
        points = law.ppf(np.linspace(0.02, 0.98, 25))
        density = d.log_prob(wf.tensor(points, dtype=dtype)).numpy()
        np.testing.assert_allclose(density, law.logpdf(points), rtol=3e-4, atol=3e-4)
        for what in ("mean", "var", "entropy"):
            known, ours = getattr(law, what)(), {"var": "variance"}.get(what, what)
            if name.startswith("VonMises") or not np.isfinite(known):
                continue
            try:
                found = getattr(d, ours)
                found = float(found() if callable(found) else found)
            except NotImplementedError:
                continue
            np.testing.assert_allclose(found, known, rtol=1e-3, atol=1e-3)


COUNTS = {
    "Bernoulli": (lambda: D.Bernoulli(0.3), of("bernoulli", 0.3)),
    "Binomial": (lambda: D.Binomial(7, wf.tensor(0.3)), of("binom", 7, 0.3)),
    "Categorical": (
        lambda: D.Categorical(wf.tensor([0.2, 0.0, 0.5, 0.3])),
        stats.rv_discrete(values=((0, 2, 3), (0.2, 0.5, 0.3))),
    ),
    "Geometric": (lambda: D.Geometric(0.4), of("geom", 0.4, -1)),
    "NegativeBinomial": (lambda: D.NegativeBinomial(3.0, wf.tensor(0.4)), of("nbinom", 3, 0.6)),
    "Poisson": (lambda: D.Poisson(3.5), of("poisson", 3.5)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_follow_their_law(name):
    make, law = COUNTS[name]
    wf.manual_seed(len(name))
    d = make()
    x = d.sample((COUNT,)).numpy().astype(int)
    values = np.arange(0, 12)
    values = values[law.pmf(values) * COUNT > 5]
    assert set(x) <= set(np.flatnonzero(law.pmf(np.arange(x.max() + 1)) > 0))
    seen = np.array([(x == k).sum() for k in values])
    expected = law.pmf(values) * COUNT
    others = COUNT - seen.sum(), COUNT - expected.sum()
    if others[1] > 5:
        seen, expected = np.append(seen, others[0]), np.append(expected, others[1])
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-3
    found = d.log_prob(wf.tensor(values.astype(np.float32))).numpy()
    np.testing.assert_allclose(found, law.logpmf(values), rtol=1e-5, atol=1e-5)


def test_vectors_and_matrices_have_their_moments():
    wf.manual_seed(3)
    cov = wf.tensor([[2.0, 0.6], [0.6, 1.0]], dtype=wf.float64)
    cases = [
        D.MultivariateNormal(wf.tensor([1.0, -1.0], dtype=wf.float64), cov),
        D.LowRankMultivariateNormal(wf.zeros(3), wf.ones(3, 1), wf.tensor([1.0, 2.0, 0.5])),
        D.Dirichlet(wf.tensor([0.4, 2.0, 1.0])),
        D.Multinomial(5, wf.tensor([0.2, 0.3, 0.5])),
        D.Wishart(5.0, cov),
        D.OneHotCategorical(wf.tensor([0.2, 0.8])),
        D.MixtureSameFamily(
            D.Categorical(wf.tensor([0.3, 0.7])), D.Normal(wf.tensor([0.0, 5.0]), 1.0)
        ),
    ]
    for d in cases:
        x = d.sample((20000,)).double().numpy()
        error = np.sqrt(np.asarray(d.variance.double()) / 20000)
        assert (np.abs(x.mean(0) - d.mean.double().numpy()) < 5 * error + 1e-6).all(), d
        np.testing.assert_allclose(x.var(0), d.variance.numpy(), rtol=0.12)
    # The correlations of LKJ(1) in three dimensions have the law 2 * Beta(3/2, 3/2) - 1
    root = D.LKJCholesky(3).sample((COUNT,)).numpy()
    correlation = (root @ np.swapaxes(root, -1, -2))[:, 2, 1]
    assert stats.kstest((correlation + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-3


def pathwise(d, parameter, x):
    """The derivative of the quantile at x: minus that of the cdf, divided by the density."""
    slope = wf.autograd.grad(d.cdf(x).sum(), parameter, allow_unused=True)[0]
    return -float(slope) / float(d.log_prob(x).exp())


@pytest.mark.parametrize(
    "make",
    [
        lambda a: D.Gamma(a, 2.0), lambda a: D.Chi2(a), lambda a: D.InverseGamma(a, 2.0),
        lambda a: D.Exponential(a), lambda a: D.Weibull(2.0, a), lambda a: D.Laplace(0.5, a),
        lambda a: D.Kumaraswamy(a, 2.0), lambda a: D.Pareto(2.0, a), lambda a: D.Normal(a, a),
        lambda a: D.Gumbel(0.0, a), lambda a: D.ContinuousBernoulli(logits=a),
    ],
)  # fmt: skip
def test_gradients_of_samples_follow_the_quantile(make):
    wf.manual_seed(2)
    for value in (0.3, 1.7, 20.0):
        a = wf.tensor(value, dtype=wf.float64, requires_grad=True)
        d = make(a)
        x = d.rsample()
        (slope,) = wf.autograd.grad(x, a)
        expected = pathwise(make(a), a, x.detach())
        np.testing.assert_allclose(float(slope), expected, rtol=1e-6)


def test_gradients_of_samples_are_right_on_average():
    wf.manual_seed(0)
    n = 100000

    def mean_of_square(make, *values):
        leaves = [wf.tensor(v, dtype=wf.float64, requires_grad=True) for v in values]
        (make(*leaves).rsample((n,)) ** 2).mean().backward()
        return [float(v.grad) for v in leaves]

    # E[x^2] of Beta(a, b) is a (a + 1) / (s (s + 1)) with s = a + b
    a, b = 0.7, 1.6
    s = a + b
    value = a * (a + 1) / (s * (s + 1))
    by_b = -value * (1 / s + 1 / (s + 1))
    by_a = value * (1 / a + 1 / (a + 1)) + by_b
    np.testing.assert_allclose(mean_of_square(D.Beta, a, b), [by_a, by_b], rtol=0.02)
    # ... of StudentT(df) df / (df - 2)
    (found,) = mean_of_square(lambda df: D.StudentT(df), 12.0)
    np.testing.assert_allclose(found, -2 / 10.0**2, rtol=0.1)


def test_seeds_transformations_and_shapes():
    def draws(scale):
        d = D.Gamma(scale, 1.0)
        return d.sample(), D.Poisson(scale * 3).sample(), D.Categorical(logits=wf.zeros(5)).sample()

    scale = wf.tensor([0.5, 2.0, 7.0])
    wf.manual_seed(5)
    plain = [x.tolist() for x in draws(scale)]
    wf.manual_seed(5)
    assert [x.tolist() for x in draws(scale)] == plain
    traced = wf.func.jit(draws)
    wf.manual_seed(5)
    first, second = ([x.tolist() for x in traced(scale)] for _ in range(2))
    assert first != second
    rows = wf.func.vmap(lambda s: D.Gamma(s, 1.0).sample(), randomness="different")(wf.ones(200))
    assert len(set(rows.tolist())) == 200
    slopes = wf.func.grad(lambda s: D.Gamma(s, 1.0).rsample((1000,)).mean())(wf.tensor(2.0))
    assert abs(slopes - 1) < 0.1


def test_bits_do_not_depend_on_threads():
    code = (
        "import weft as wf, hashlib; D = wf.distributions; wf.manual_seed(1)\n"
        "a = wf.full((5000,), 0.7, requires_grad=True)\n"
        "for _ in range(4):\n"
        "    x = D.Gamma(a, 1.0).rsample(); x.log().sum().backward()\n"
        "    y = D.VonMises(wf.zeros(500), wf.ones(500)).sample()\n"
        "    arrays = [v.numpy().tobytes() for v in (x.detach(), a.grad, y)]\n"
        "    print(hashlib.md5(b''.join(arrays)).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "WEFT_THREADS": n},
            check=True, capture_output=True, text=True,
        ).stdout
        for n in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
