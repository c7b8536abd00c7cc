"""`weft.distributions` beside PyTorch: values, gradients, constraints, transforms, divergences."""

import inspect
import itertools
import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

import weft as wf  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
WD, TD = wf.distributions, torch.distributions


def positive(r, *shape):
    return np.exp(r.uniform(-1.0, 1.5, shape or (3,)))


def number(r, *shape):
    return r.normal(size=shape or (3,))


def chance(r, *shape):
    return r.uniform(0.1, 0.9, shape or (3,))


def simplex(r, *shape):
    return r.dirichlet(np.ones(4), shape or (3,))


def definite(r, *shape):
    a = r.normal(size=(*shape, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + np.eye(3)


def root(r, *shape):
    return np.linalg.cholesky(definite(r, *shape))


def counts(r, *shape):
    return r.integers(0, 6, shape or (3,)).astype(float)


def hot(r, *shape):
    return np.eye(4)[r.integers(0, 4, shape or (3,))]


def nine(r, *shape):
    return r.multinomial(9, np.ones(4) / 4, shape).astype(float)


def few(r):
    return np.array([0.7, 1.5, 4.0])


def inside(r, *shape):
    return 0.2 * chance(r, *shape)


def warm(r):
    return np.array(0.7)


def correlation_root(r, *shape):
    a = definite(r, *shape)
    d = np.sqrt(np.diagonal(a, axis1=-2, axis2=-1))
    return np.linalg.cholesky(a / d[..., None] / d[..., None, :])


def above(r, *shape):
    return positive(r, *shape) + 5.0


# name: the draws of the parameters, and of a value; parameters by name, if several sets fit
CASES = {
    "Bernoulli": ({"probs": chance}, lambda r, *s: r.integers(0, 2, s).astype(float)),
    "Bernoulli logits": ({"logits": number}, lambda r, *s: r.integers(0, 2, s).astype(float)),
    "Beta": ({"concentration1": positive, "concentration0": positive}, chance),
    "Binomial": ({"total_count": 5, "probs": chance}, counts),
    "Binomial logits": ({"total_count": 5, "logits": number}, counts),
    "Categorical": ({"probs": simplex}, lambda r, *s: r.integers(0, 4, s)),
    "Categorical logits": (
        {"logits": lambda r: number(r, 3, 4)}, lambda r, *s: r.integers(0, 4, s),
    ),
    "Cauchy": ({"loc": number, "scale": positive}, number),
    "Chi2": ({"df": positive}, positive),
    "ContinuousBernoulli": ({"probs": chance}, chance),
    "ContinuousBernoulli logits": ({"logits": lambda r: np.array([0.001, 2.0, -1.5])}, chance),
    "Dirichlet": ({"concentration": lambda r: positive(r, 3, 4)}, simplex),
    "Exponential": ({"rate": positive}, positive),
    "FisherSnedecor": ({"df1": positive, "df2": above}, positive),
    "Gamma": ({"concentration": positive, "rate": positive}, positive),
    "GeneralizedPareto": (
        {"loc": number, "scale": positive, "concentration": lambda r: np.array([-0.3, 0.2, 0.4])},
        lambda r, *s: 0.1 * chance(r, *s) + 3.0,
    ),
    "Geometric": ({"probs": chance}, counts),
    "Geometric logits": ({"logits": number}, counts),
    "Gumbel": ({"loc": number, "scale": positive}, number),
    "HalfCauchy": ({"scale": positive}, positive),
    "HalfNormal": ({"scale": positive}, positive),
    "InverseGamma": ({"concentration": above, "rate": positive}, positive),
    "Kumaraswamy": ({"concentration1": positive, "concentration0": positive}, chance),
    "LKJCholesky": ({"dim": 3, "concentration": positive}, correlation_root),
    "Laplace": ({"loc": number, "scale": positive}, number),
    "LogNormal": ({"loc": number, "scale": positive}, positive),
    "LogisticNormal": (
        {"loc": lambda r: number(r, 3, 3), "scale": lambda r: positive(r, 3, 3)}, simplex,
    ),
    "LowRankMultivariateNormal": (
        {"loc": lambda r: number(r, 3, 3), "cov_factor": lambda r: number(r, 3, 3, 2),
         "cov_diag": lambda r: positive(r, 3, 3)},
        lambda r, *s: number(r, *s, 3),
    ),
    "Multinomial": ({"total_count": 9, "probs": simplex}, nine),
    "MultivariateNormal": (
        {"loc": lambda r: number(r, 3, 3), "covariance_matrix": definite},
        lambda r, *s: number(r, *s, 3),
    ),
    "MultivariateNormal precision": (
        {"loc": lambda r: number(r, 3), "precision_matrix": lambda r: definite(r, 3)},
        lambda r, *s: number(r, *s, 3),
    ),
    "MultivariateNormal root": (
        {"loc": lambda r: number(r, 3, 3), "scale_tril": lambda r: root(r, 3)},
        lambda r, *s: number(r, *s, 3),
    ),
    "NegativeBinomial": ({"total_count": positive, "probs": chance}, counts),
    "NegativeBinomial logits": ({"total_count": positive, "logits": number}, counts),
    "Normal": ({"loc": number, "scale": positive}, number),
    "OneHotCategorical": ({"probs": simplex}, hot),
    "OneHotCategoricalStraightThrough": ({"logits": lambda r: number(r, 3, 4)}, hot),
    "Pareto": ({"scale": chance, "alpha": above}, lambda r, *s: positive(r, *s) + 1.0),
    "Poisson": ({"rate": positive}, counts),
    "RelaxedBernoulli": ({"temperature": warm, "probs": chance}, chance),
    "RelaxedBernoulli logits": ({"temperature": warm, "logits": number}, chance),
    "RelaxedOneHotCategorical": ({"temperature": warm, "probs": simplex}, simplex),
    "StudentT": ({"df": few, "loc": number, "scale": positive}, number),
    "Uniform": ({"low": lambda r: -positive(r), "high": positive}, inside),
    "VonMises": ({"loc": number, "concentration": positive}, number),
    "Weibull": ({"scale": positive, "concentration": lambda r: positive(r) + 1}, positive),
    "Wishart": ({"df": above, "covariance_matrix": lambda r: definite(r, 3)}, definite),
    "Wishart root": ({"df": above, "scale_tril": lambda r: root(r, 3)}, definite),
}  # fmt: skip
# What PyTorch gets wrong, or has in another way, with the reason
ELSEWHERE = {
    ("Kumaraswamy", "mode"): "PyTorch's has the logarithm of a negative number for b > 1",
}
MOMENTS = ("mean", "mode", "variance", "stddev")


def drawn(name):
    given, value = CASES[name]
    # PyTorch's compares it with a number of float32
    dtype = np.float32 if name == "GeneralizedPareto" else np.float64
    r = np.random.default_rng(len(name) * 7 + ord(name[0]))
    parameters = {k: np.asarray(v(r), dtype) if callable(v) else v for k, v in given.items()}
    x = np.asarray(value(r, *((2, 3) if name.split()[0] != "Multinomial precision" else (3,))))
    return parameters, x.astype(dtype) if x.dtype.kind == "f" else x


def made(library, name, parameters):
    leaves = {
        k: library.tensor(v).requires_grad_() if isinstance(v, np.ndarray) else v
        for k, v in parameters.items()
    }
    kind = getattr(library.distributions, name.split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**leaves), [v for v in leaves.values() if hasattr(v, "grad")]


def slopes(library, y, leaves):
    weights = np.cos(np.arange(y.numel()) + 1.0).reshape(tuple(y.shape))
    total = (y * library.tensor(weights)).sum()
    found = library.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
    return [
        np.zeros(tuple(v.shape)) if g is None else g.numpy()
        for g, v in zip(found, leaves, strict=True)
    ]


def same(ours, theirs, what, rtol=1e-9, atol=1e-10):
    a, b = (np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (ours, theirs))
    assert a.shape == b.shape, (what, a.shape, b.shape)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=str(what))


def beside(name, act, what, grad=True, **near):
    parameters, x = drawn(name)
    theirs, their_leaves = made(torch, name, parameters)
    try:
        y = act(torch, theirs, torch.tensor(x))
    except NotImplementedError:
        ours, _ = made(wf, name, parameters)
        with pytest.raises(NotImplementedError):
            act(wf, ours, wf.tensor(x))
        return
    ours, our_leaves = made(wf, name, parameters)
    z = act(wf, ours, wf.tensor(x))
    same(z, y, (name, what), **near)
    if grad and y.requires_grad and y.isfinite().all():
        pairs = zip(slopes(wf, z, our_leaves), slopes(torch, y, their_leaves), strict=True)
        for ours, theirs in pairs:
            if name.endswith("root"):  # above the diagonal there is nothing
                ours, theirs = np.tril(ours), np.tril(theirs)
            same(ours, theirs, (name, what, "gradient"), **{"rtol": 1e-7, "atol": 1e-8, **near})


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    # PyTorch's I0 and I1 are approximations to 1e-7
    rough = name in ("VonMises", "GeneralizedPareto")
    kind = "float32" if name == "GeneralizedPareto" else "float64"
    near = {"rtol": 2e-6, "atol": 2e-6} if rough else {}
    beside(name, lambda t, d, x: d.log_prob(x), "log_prob", **near)
    without = name in ("Gamma", "Chi2", "InverseGamma")  # in PyTorch, by the concentration
    beside(name, lambda t, d, x: d.cdf(x), "cdf", grad=not without, **near)
    beside(
        name,
        lambda t, d, x: d.icdf(t.tensor([0.2, 0.5, 0.9], dtype=getattr(t, kind))),
        "icdf",
        **near,
    )
    if name == "Multinomial":  # PyTorch takes a logarithm in float32
        near = {"rtol": 1e-7}
    beside(name, lambda t, d, x: d.entropy(), "entropy", **near)
    for what in MOMENTS:
        if (name.split()[0], what) not in ELSEWHERE:
            beside(name, lambda t, d, x, w=what: getattr(d, w), what, grad=what != "mode", **near)
    beside(name, lambda t, d, x: d.enumerate_support(), "values", grad=False)
    beside(name, lambda t, d, x: d.enumerate_support(expand=False), "values", grad=False)


@pytest.mark.parametrize("name", CASES)
def test_shapes_constraints_and_expansion(name):
    parameters, x = drawn(name)
    (ours, _), (theirs, _) = (made(t, name, parameters) for t in (wf, torch))
    assert ours.batch_shape == tuple(theirs.batch_shape)
    assert ours.event_shape == tuple(theirs.event_shape)
    wide, broad = ours.expand((2, *ours.batch_shape)), theirs.expand((2, *theirs.batch_shape))
    assert wide.batch_shape == tuple(broad.batch_shape) and wide.event_shape == ours.event_shape
    same(wide.log_prob(wf.tensor(x)), broad.log_prob(torch.tensor(x)), name, rtol=1e-6)
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    for key in ("has_rsample", "has_enumerate_support"):
        assert bool(getattr(ours, key)) == bool(getattr(theirs, key)), key
    for seeds in ((), (2,), (4, 1)):
        drawn_ = ours.sample(seeds)
        assert drawn_.shape == (*seeds, *ours.batch_shape, *ours.event_shape)
        assert not drawn_.requires_grad
        assert drawn_.dtype is (
            wf.int64
            if name.startswith("Categorical")
            else wf.float32
            if name == "GeneralizedPareto"
            else wf.float64
        )
        assert bool(ours.support.check(drawn_).all()), name
    if ours.has_rsample:
        assert ours.rsample().requires_grad
    else:
        with pytest.raises(NotImplementedError):
            ours.rsample()
    given = inspect.signature(type(ours)).parameters
    assert [*given] == [*inspect.signature(type(theirs)).parameters]
    assert (ours.support.event_dim, ours.support.is_discrete) == (
        theirs.support.event_dim, theirs.support.is_discrete,
    )  # fmt: skip
    assert f"{ours!r}".startswith(name.split()[0])


PAIRED = {
    "Bernoulli", "Beta", "Categorical", "Cauchy", "ContinuousBernoulli", "Dirichlet",
    "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal", "HalfCauchy", "InverseGamma",
    "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MultivariateNormal",
    "Normal", "OneHotCategorical", "Pareto", "Poisson", "Uniform", "Binomial", "Wishart",
}  # fmt: skip


def test_every_name_and_pair_is_here():
    for part in ("", "constraints", "transforms", "utils"):
        theirs = getattr(TD, part) if part else TD
        assert set(theirs.__all__) <= set(dir(getattr(WD, part) if part else WD)), part

    def names(registry):
        return {(p.__name__, q.__name__) for p, q in registry}

    assert names(WD.kl._KL) >= names(TD.kl._KL_REGISTRY)


PAIRS = [
    (p, q) for p, q in itertools.product(sorted(PAIRED), repeat=2)
    if TD.kl._dispatch_kl(getattr(TD, p), getattr(TD, q)) is not NotImplemented
]  # fmt: skip


@pytest.mark.parametrize("p, q", PAIRS)
def test_divergences(p, q):
    found = []
    for library in (torch, wf):
        (a, leaves), (b, others) = (
            made(library, n, {**drawn(n)[0], **more})
            for n, more in ((p, {}), (q, SECOND.get((p, q), {})))
        )
        try:
            found.append((library.distributions.kl_divergence(a, b), [*leaves, *others]))
        except NotImplementedError:
            found.append(None)
    theirs, ours = found
    assert (theirs is None) == (ours is None)
    if theirs is None or (p, q) in SECOND_WRONG:
        return
    same(ours[0], theirs[0], (p, q), rtol=1e-8, atol=1e-9)
    if theirs[0].isfinite().all() and p != "Wishart":  # PyTorch's is detached from p
        for x, y in zip(slopes(wf, *ours), slopes(torch, *theirs), strict=True):
            same(x, y, (p, q, "gradient"), rtol=1e-6, atol=1e-7)


SECOND = {("Uniform", "Uniform"): {"low": np.full(3, -9.0), "high": np.full(3, 9.0)}}
SECOND_WRONG = {
    # PyTorch's `max` of two conditions makes it infinite where only one end is outside
    ("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli"),
}  # fmt: skip


TRANSFORMS = {
    "Exp": (lambda t: t.ExpTransform(), number),
    "Exp.inv": (lambda t: t.ExpTransform().inv, positive),
    "Power": (lambda t: t.PowerTransform(1.7), positive),
    "Sigmoid": (lambda t: t.SigmoidTransform(), number),
    "Softplus": (lambda t: t.SoftplusTransform(), number),
    "Tanh": (lambda t: t.TanhTransform(), number),
    "Abs": (lambda t: t.AbsTransform(), positive),
    "Affine": (lambda t: t.AffineTransform(2.0, -3.0), number),
    "Affine of rows": (lambda t: t.AffineTransform(2.0, 0.5, event_dim=1), number),
    "Softmax": (lambda t: t.SoftmaxTransform(), lambda r: np.log(simplex(r))),
    "StickBreaking": (lambda t: t.StickBreakingTransform(), number),
    "CorrCholesky": (lambda t: t.CorrCholeskyTransform(), lambda r: number(r, 2, 6)),
    "LowerCholesky": (lambda t: t.LowerCholeskyTransform(), lambda r: np.tril(number(r, 2, 3, 3))),
    "PositiveDefinite": (
        lambda t: t.PositiveDefiniteTransform(), lambda r: np.tril(number(r, 2, 3, 3)),
    ),
    "Compose": (
        lambda t: t.ComposeTransform([t.AffineTransform(1.0, 2.0), t.StickBreakingTransform()]),
        number,
    ),
    "Compose empty": (lambda t: t.identity_transform, number),
    "Independent": (lambda t: t.IndependentTransform(t.ExpTransform(), 1), number),
    "Reshape": (lambda t: t.ReshapeTransform((3,), (3, 1)), number),
    "Cat": (
        lambda t: t.CatTransform([t.ExpTransform(), t.TanhTransform()], 0, [1, 2]), number,
    ),
    "Stack": (
        lambda t: t.StackTransform([t.ExpTransform(), t.TanhTransform(), t.ExpTransform()], 0),
        number,
    ),
    "Cumulative": (lambda t: t.CumulativeDistributionTransform(normal_of(t)), number),
}  # fmt: skip


def normal_of(module):
    return (WD if module is WD.transforms else TD).Normal(0.5, 2.0)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    make, values = TRANSFORMS[name]
    x = values(np.random.default_rng(3))
    found = []
    for library in (wf, torch):
        t, leaf = make(library.distributions.transforms), library.tensor(x).requires_grad_()
        y = t(leaf)
        back = t.inv(y.detach())
        try:
            slope = t.log_abs_det_jacobian(leaf, y)
        except NotImplementedError:
            slope = library.zeros(())
        shapes = t.forward_shape(tuple(x.shape)), t.inverse_shape(tuple(y.shape))
        ranks = t.domain.event_dim, t.codomain.event_dim, bool(t.bijective)
        cached = t.with_cache()
        assert cached.inv(cached(leaf)) is leaf or name == "Compose empty"
        assert (t == t) and (t == make(library.distributions.transforms) or name in UNEQUAL)
        gradients = [
            *slopes(library, y, [leaf]),
            *(slopes(library, slope, [leaf]) if slope.requires_grad else []),
        ]
        found.append(([y, back, slope, *gradients], shapes, ranks))
    (ours, shapes, ranks), (theirs, their_shapes, their_ranks) = found
    assert (tuple(map(tuple, shapes)), ranks) == (tuple(map(tuple, their_shapes)), their_ranks)
    for a, b in zip(ours, theirs, strict=True):
        same(a, b, name, rtol=1e-7, atol=1e-9)


UNEQUAL = {"Cumulative", "Independent", "Reshape", "Cat", "Stack", "CorrCholesky"}

CONSTRAINTS = {
    "boolean": [0.0, 1.0, 0.5], "nonnegative_integer": [0.0, 2.0, -1.0, 0.5],
    "positive_integer": [0.0, 1.0], "real": [1.0, math.nan], "positive": [0.0, 1.0],
    "nonnegative": [0.0, -1.0], "unit_interval": [0.0, 0.5, 1.0, 1.1],
    "real_vector": [[1.0, 2.0], [math.nan, 1.0]], "simplex": [[0.5, 0.5], [0.5, 0.6], [-1, 2.0]],
    "one_hot": [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]],
    "lower_triangular": [[[1.0, 0.0], [2.0, -3.0]], [[1.0, 1.0], [2.0, 3.0]]],
    "lower_cholesky": [[[1.0, 0.0], [2.0, -3.0]], [[1.0, 0.0], [2.0, 3.0]]],
    "corr_cholesky": [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]],
    "square": [[[1.0, 0.0], [2.0, -3.0]]],
    "symmetric": [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 0], [1, 1]]],
    "positive_semidefinite": [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]],
    "positive_definite": [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]],
    "greater_than(2)": [2.0, 3.0], "greater_than_eq(2)": [2.0, 1.0], "less_than(2)": [2.0, 1.0],
    "interval(-1, 2)": [-1.0, 3.0], "half_open_interval(-1, 2)": [-1.0, 2.0],
    "integer_interval(0, 3)": [0.0, 1.5, 4.0], "multinomial(3)": [[1.0, 2.0], [2.0, 2.0]],
    "independent(positive, 1)": [[1.0, 2.0], [1.0, -1.0]],
    "cat([positive, real], 0, [1, 2])": [-1.0, -1.0, 2.0],
    "stack([positive, real], 0)": [[-1.0, 1.0], [-1.0, 2.0]],
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_and_their_transforms(name):
    x = np.array(CONSTRAINTS[name])
    kinds = [eval(name, vars(t.distributions.constraints)) for t in (wf, torch)]
    ours, theirs = (k.check(t.tensor(x)) for k, t in zip(kinds, (wf, torch), strict=True))
    assert ours.numpy().tolist() == theirs.numpy().tolist()
    assert kinds[0].event_dim == kinds[1].event_dim
    assert kinds[0].is_discrete == kinds[1].is_discrete
    rank = max(kinds[0].event_dim, 1)
    sizes = {"corr_cholesky": (3,), "stack([positive, real], 0)": (2, 3)}
    free = np.random.default_rng(0).normal(size=sizes.get(name, (3,) * rank))
    for way in ("transform_to", "biject_to"):
        found = []
        for kind, library in zip(kinds, (wf, torch), strict=True):
            try:
                found.append(getattr(library.distributions, way)(kind)(library.tensor(free)))
            except NotImplementedError:
                found.append(None)
        assert (found[0] is None) == (found[1] is None), (name, way)
        if found[0] is not None:
            same(found[0], found[1], (name, way))
            assert bool(kinds[0].check(found[0]).all())
