"""First and second derivatives beside PyTorch's, at zeros, ties, kinks, infinities and extremes.

Every function is differentiated twice in reverse; `jvp` of the gradient must agree with it. Points
where PyTorch's own result is NaN are not compared, nor NaN inputs: `test_nan_spreads` has those.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402

INF, NAN = float("inf"), float("nan")
POINTS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 1e-8, -1e-8, 1e-20, 10.0, -10.0,
    21.0, -40.0, 90.0, -90.0, 750.0, -750.0, 1e10, -1e10, 1e30, INF, -INF,
]  # fmt: skip
GRID = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 1e-20, 1e30, -1e30, 800.0, INF, -INF]


def of(name, *modules):
    """A function by its name, in each library."""

    def found(m):
        for path in modules or ("",):
            space = m.nn.functional if path == "F" else getattr(m, path) if path else m
            if hasattr(space, name):
                return getattr(space, name)
        raise AttributeError(name)

    return found


def loss(name, second, **options):
    """An elementwise loss whose target is all `second`, or the second argument."""
    options = {"reduction": "none", **options}

    def made(m):
        function = getattr(m.nn.functional, name)
        if second is None:
            return lambda x, y: function(x, y, **options)
        return lambda x: function(x, m.full_like(x, second), **options)

    return made


PLAIN = """
    abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2
    expm1 floor frac i0 lgamma log log10 log1p log2 logit nan_to_num neg rad2deg reciprocal round
    rsqrt sigmoid sign sin sinc sinh sqrt square tan tanh trunc
"""
SPECIAL = "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri psi gammaln expit"
ACTIVATIONS = """
    celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6
    selu silu softplus softshrink softsign tanhshrink
"""
BINARY = """
    add sub mul div pow atan2 hypot maximum minimum fmax fmin logaddexp logaddexp2 xlogy fmod
    remainder
"""


def power(n):
    return lambda m: lambda x: x**n


def power_of(n):
    return lambda m: lambda x: m.pow(n, x)


def p_norm(p):
    return lambda m, x: m.linalg.vector_norm(x, p, 1)


ONE = {name: of(name) for name in PLAIN.split()}
ONE |= {name: of(name, "special") for name in SPECIAL.split()}
ONE |= {name: of(name, "F") for name in ACTIVATIONS.split()}
ONE |= {
    "threshold": lambda m: lambda x: m.nn.functional.threshold(x, 0.5, 2.0),
    "celu 0.5": lambda m: lambda x: m.nn.functional.celu(x, 0.5),
    "gelu tanh": lambda m: lambda x: m.nn.functional.gelu(x, approximate="tanh"),
    "clamp": lambda m: lambda x: m.clamp(x, -1.0, 2.0),
    "logit eps": lambda m: lambda x: m.logit(x, 0.25),
    "mvlgamma": lambda m: lambda x: m.mvlgamma(x, 2),
    "polygamma": lambda m: lambda x: m.polygamma(1, x),
    "x / x": lambda m: lambda x: x / x,
    "where": lambda m: lambda x: m.where(x > 0, x * x, x),
    "huber": loss("huber_loss", 0.0),
    "huber 0.5": loss("huber_loss", 0.0, delta=0.5),
    "smooth l1": loss("smooth_l1_loss", 0.0),
    "smooth l1 2": loss("smooth_l1_loss", 1.0, beta=2.0),
    "l1": loss("l1_loss", 0.0),
    "mse": loss("mse_loss", 0.0),
    "soft margin": loss("soft_margin_loss", 1.0),
    "hinge embedding": loss("hinge_embedding_loss", -1.0),
    "logits 0": loss("binary_cross_entropy_with_logits", 0.0),
    "logits 1": loss("binary_cross_entropy_with_logits", 1.0),
    "poisson": loss("poisson_nll_loss", 1.0),
    "kl log": loss("kl_div", 0.0, log_target=True),
}
ONE |= {f"x ** {n}": power(n) for n in (0, 1, 2, 3, 0.5, 1.5, -1, -2)}
ONE |= {f"{n} ** x": power_of(n) for n in (2.0, -2.0)}
TWO = {name: of(name) for name in BINARY.split()}
TWO |= {
    "huber": loss("huber_loss", None, delta=1.5),
    "smooth l1": loss("smooth_l1_loss", None, beta=1.5),
    "l1 of two": loss("l1_loss", None),
    "mse": loss("mse_loss", None),
    "logits": loss("binary_cross_entropy_with_logits", None),
    "poisson": loss("poisson_nll_loss", None, log_input=False),
    "kl": loss("kl_div", None),
    "clamp": lambda m: lambda x, y: m.clamp(x, min=y),
    "lerp": lambda m: lambda x, y: m.lerp(x, y, 0.25),
}

CLOSE = {"float64": (1e-9, 4e-16), "float32": (2e-4, 1e-7)}


def firsts(m, y, xs):
    """Gradients that can be differentiated again; None where there are none."""
    if not y.requires_grad:
        return [None] * len(xs)
    return m.autograd.grad(y.sum(), xs, create_graph=True, allow_unused=True)


def theirs(make, points, dtype):
    """PyTorch's gradients, and the gradients of each of their sums."""
    xs = [torch.tensor(p, dtype=getattr(torch, dtype), requires_grad=True) for p in points]
    zeros, unknown = (np.full(len(points[0]), v) for v in (0.0, NAN))
    slopes = firsts(torch, make(torch)(*xs), xs)
    found = [zeros if g is None else g.detach().numpy(force=True) for g in slopes]
    for g in slopes:
        try:
            curves = [None] * len(xs) if g is None else firsts(torch, g, xs)
            found += [zeros if h is None else h.detach().numpy(force=True) for h in curves]
        except RuntimeError as error:
            assert "not implemented" in str(error)
            found += [unknown] * len(xs)
    return found


def ours(makes, points, dtype):
    """The same of Weft, of all functions in one program: each has its own arguments."""
    count, zeros = len(points), np.zeros(len(points[0]))
    args = [[wf.tensor(p, dtype=getattr(wf, dtype), requires_grad=True) for p in points]
            for _ in makes]  # fmt: skip
    flat = [x for xs in args for x in xs]
    ys = [make(wf)(*xs) for make, xs in zip(makes, args, strict=True)]
    slopes = firsts(wf, wf.stack([y for y in ys if y.requires_grad]), flat)
    found = [slopes]
    for k in range(count):
        of_one = [g for g in slopes[k::count] if g is not None and g.requires_grad]
        found.append(firsts(wf, wf.stack(of_one), flat))
    arrays = [[zeros if g is None else g.detach().numpy() for g in gs] for gs in found]
    return [
        [g for gs in arrays for g in gs[i * count : (i + 1) * count]] for i in range(len(makes))
    ]


def nowhere(*points):
    return np.zeros(len(points[0]), bool)


def poles(x):
    return (x < 0) & ((np.floor(x) == x) | (x == -0.5))


def small_or_large(x):
    return ((x != 0) & (np.abs(x) < 1e-7)) | (np.abs(x) > 20)


# Where PyTorch's results are the worse ones, or where several would do, as docs/EAGER.md says.
APART = {
    **dict.fromkeys(("digamma", "psi", "lgamma", "gammaln", "polygamma", "mvlgamma"), poles),
    **dict.fromkeys(("celu", "celu 0.5", "elu", "selu"), lambda x: x == 0),
    **dict.fromkeys(("sinc", "i0e", "i1", "i1e", "log_ndtr", "erfcx"), small_or_large),
    "logit": lambda x: (x < 0) | (x > 1),  # NaN, as the value and the first derivative
    "x ** 0.5": lambda x: x == -INF,  # NaN, as the value and the first derivative
    "hardsigmoid": np.isfinite,  # PyTorch's 1/6 is one of float32
    **dict.fromkeys(("mish", "gelu tanh"), lambda x: x > 5),  # 1 - tanh**2 cancels in both
    "pow": lambda x, y: y == 0,
    "xlogy": lambda x, y: (x == 0) & (y < 0),
    "l1 of two": lambda x, y: np.isinf(x) & (x == y),
    "atan2": lambda x, y: (x == y) & (x == 1e-20),
}


def differing(functions, points, dtype, runs):
    """Where the results differ, in all runs up to the compiled one."""
    rtol, atol = CLOSE[dtype]
    wanted = {name: theirs(make, points, dtype) for name, make in functions.items()}
    found = []
    for run in range(runs):
        results = ours(list(functions.values()), points, dtype)
        for (name, want), got in zip(wanted.items(), results, strict=True):
            for i, (a, b) in enumerate(zip(got, want, strict=True)):
                with np.errstate(invalid="ignore"):
                    fine = np.isnan(b) | (a == b) | (np.abs(a - b) <= rtol * np.abs(b) + atol)
                fine |= APART.get(name, nowhere)(*map(np.array, points))
                at = np.flatnonzero(~fine)
                found += [(name, run, i, *[p[k] for p in points], a[k], b[k]) for k in at]
    return found


# Functions of rows: the values decide which elements are tied, zero or infinite.
ROWS = {
    "plain": [[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]],
    "zeros": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    "some zeros": [[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]],
    "ties": [[1.0, 1.0, 1.0], [2.0, 2.0, 1.0]],
    "negative zeros": [[-0.0, 0.0, -0.0], [0.0, -1.0, 1.0]],
    "infinite": [[INF, 1.0, 2.0], [1.0, -INF, 3.0]],
    "nothing": [[-INF, -INF, -INF], [-INF, 0.0, 1.0]],
    "huge": [[1e30, 1e30, 1.0], [-1e30, 1.0, 2.0]],
}


def ranked(m, x):
    """Different weights for the columns."""
    return x * m.arange(1.0, x.shape[-1] + 1, dtype=x.dtype)


def classes(m, *labels):
    return m.tensor(labels)


def signs(m, x):
    return m.tensor([[1.0, -1, 1], [-1, 1, -1]], dtype=x.dtype)


def turned(m, x):
    return m.flip(x, (0,))


OF_ROWS = {
    "sum": lambda m, x: m.sum(x, 1),
    "mean": lambda m, x: m.mean(x, 1),
    "prod": lambda m, x: m.prod(x, 1),
    "cumprod": lambda m, x: ranked(m, m.cumprod(x, 1)),
    "var": lambda m, x: m.var(x, 1),
    "std": lambda m, x: m.std(x, 1, correction=0),
    "max": lambda m, x: m.max(x, 1)[0],
    "amax": lambda m, x: m.amax(x, 1),
    "amin": lambda m, x: m.amin(x),
    "median": lambda m, x: m.median(x, 1)[0],
    "sort": lambda m, x: ranked(m, m.sort(x, dim=1, stable=True)[0]),
    "topk": lambda m, x: ranked(m, m.topk(x, 2, 1)[0]),
    "cummax": lambda m, x: ranked(m, m.cummax(x, 1)[0]),
    "logcumsumexp": lambda m, x: ranked(m, m.logcumsumexp(x, 1)),
    "quantile": lambda m, x: m.quantile(x, 0.3, 1),
    "logsumexp": lambda m, x: m.logsumexp(x, 1),
    "logsumexp of all": lambda m, x: x.logsumexp((0, 1)),
    "softmax": lambda m, x: ranked(m, m.softmax(x, 1)),
    "log_softmax": lambda m, x: ranked(m, m.log_softmax(x, 1)),
    "cross entropy": lambda m, x: m.nn.functional.cross_entropy(x, classes(m, 1, 2)),
    "smoothed": lambda m, x: m.nn.functional.cross_entropy(
        x, classes(m, 0, 2), label_smoothing=0.1
    ),
    "ignored": lambda m, x: m.nn.functional.cross_entropy(x, classes(m, -100, 2)),
    "norm": lambda m, x: m.norm(x),
    **{f"norm {p}": p_norm(p) for p in (1, 2, 3, 1.5, 0.5, -1, INF, -INF)},
    "matrix norm": lambda m, x: m.linalg.matrix_norm(x, 1),
    "dist": lambda m, x: m.dist(x[0], x[1]),
    "cosine": lambda m, x: m.nn.functional.cosine_similarity(x[0], x[1], 0),
    "normalize": lambda m, x: ranked(m, m.nn.functional.normalize(x, dim=1)),
    "pairwise": lambda m, x: m.nn.functional.pairwise_distance(x, turned(m, x), eps=0.0),
    "cdist": lambda m, x: m.cdist(x, x * 1.0),
    "pdist": lambda m, x: m.nn.functional.pdist(m.stack([x[0], x[0] * 1.0, x[1]])),
    "cosine embedding": lambda m, x: m.nn.functional.cosine_embedding_loss(
        x, turned(m, x), classes(m, 1, -1)
    ),
    "triplet": lambda m, x: m.nn.functional.triplet_margin_loss(x, turned(m, x), x * 1.5),
    "margin ranking": lambda m, x: m.nn.functional.margin_ranking_loss(
        x[0], x[1], m.ones(3, dtype=x.dtype), margin=1.0
    ),
    "multi margin": lambda m, x: m.nn.functional.multi_margin_loss(x, classes(m, 1, 2)),
    "hinge": lambda m, x: m.nn.functional.hinge_embedding_loss(x, signs(m, x)),
    "bce": lambda m, x: m.nn.functional.binary_cross_entropy(
        m.clamp(x, 0.0, 1.0), (signs(m, x) + 1) / 2
    ),
    "bce of logits": lambda m, x: m.nn.functional.binary_cross_entropy_with_logits(x, signs(m, x)),
    "gaussian": lambda m, x: m.nn.functional.gaussian_nll_loss(x[0], x[1], x[0] * x[0]),
    "kl": lambda m, x: m.nn.functional.kl_div(
        m.log_softmax(x, 1), m.softmax(turned(m, x), 1), reduction="sum"
    ),
    "layer norm": lambda m, x: ranked(m, m.nn.functional.layer_norm(x, (3,))),
    "rms norm": lambda m, x: ranked(m, m.nn.functional.rms_norm(x, (3,))),
    "max pool": lambda m, x: m.nn.functional.max_pool1d(x[None], 2, 1),
    "lp pool": lambda m, x: m.nn.functional.lp_pool1d(x[None], 2.0, 2),
    "renorm": lambda m, x: m.renorm(x, 2, 0, 1.0),
    "complex abs": lambda m, x: m.complex(x[0], x[1]).abs(),
    "angle": lambda m, x: m.complex(x[0], x[1]).angle(),
    "attention": lambda m, x: m.nn.functional.scaled_dot_product_attention(
        x[None], x[None], x[None]
    ),
}

ROWS_APART = {
    "bce": "second",  # PyTorch's are 1e24 and 0 at 0 and 1
    "prod": "second",  # PyTorch divides infinities, and loses terms below 1e-16 of others
    "cumprod": "second",
    "logcumsumexp": "huge",  # PyTorch: equal huge elements do not share the gradient
    "attention": "huge",
    "multi margin": "huge",  # PyTorch loses the margin
}


def row_derivatives(m, names, rows, dtype):
    """Gradients, and gradients of their weighted sums; in one program."""
    xs = [m.tensor(rows, dtype=getattr(m, dtype), requires_grad=True) for _ in names]
    ys = [OF_ROWS[name](m, x) for name, x in zip(names, xs, strict=True)]
    slopes = firsts(m, sum(y.sum() for y in ys), xs)
    weights = m.arange(1.0, 7.0, dtype=xs[0].dtype).reshape(2, 3)
    linked = [g for g in slopes if g is not None and g.requires_grad]
    try:
        total = sum((g * weights).sum() for g in linked)
        curves = firsts(m, total, xs) if linked else [None] * len(xs)
    except RuntimeError as error:
        assert m is torch and "not implemented" in str(error)
        curves = [m.full_like(x, NAN) for x in xs]
    return [
        [np.zeros((2, 3)) if g is None else g.detach().numpy(force=True) for g in pair]
        for pair in zip(slopes, curves, strict=True)
    ]


def test_functions_of_one_number():
    imports = ("i0e", "i1e", "log_ndtr", "softsign")  # of PyTorch's compiler, which take seconds
    functions = {name: make for name, make in ONE.items() if name not in imports}
    assert not differing(functions, [POINTS], "float64", runs=1)


@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_functions_of_two_numbers(runs):
    points = [list(p) for p in zip(*[(a, b) for a in GRID for b in GRID], strict=True)]
    for dtype in CLOSE:
        assert not differing(TWO, points, dtype, runs)


@pytest.mark.slow
def test_compiled_functions_of_one_number():
    for dtype in CLOSE:
        assert not differing(ONE, [POINTS], dtype, runs=3)


@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ROWS)
def test_functions_of_rows(kind, runs):
    names = list(OF_ROWS)
    wanted = [row_derivatives(torch, [name], ROWS[kind], "float64")[0] for name in names]
    for _ in range(runs):
        found = row_derivatives(wf, names, ROWS[kind], "float64")
        for name, ours, theirs in zip(names, found, wanted, strict=True):
            apart = ROWS_APART.get(name)
            for what, a, b in zip(("first", "second"), ours, theirs, strict=True):
                if apart not in (what, kind):
                    compared = ~np.isnan(b)
                    np.testing.assert_allclose(
                        a[compared], b[compared], rtol=1e-8, atol=1e-8, err_msg=f"{name} {what}"
                    )


SPREADING = {
    "logsumexp": lambda m, x: m.logsumexp(x, 0),
    "method": lambda m, x: x.logsumexp(-1),
    "special": lambda m, x: m.special.logsumexp(x, 0),
    "softmax": lambda m, x: m.softmax(x, 0)[0],
    "log_softmax": lambda m, x: m.log_softmax(x, 0)[0],
    "logaddexp": lambda m, x: m.logaddexp(x[0], x[1]),
    "logaddexp2": lambda m, x: m.logaddexp2(x[0], x[1]),
    "logit": lambda m, x: m.logit(x + 1).sum(),
    "huber": lambda m, x: m.nn.functional.huber_loss(x, m.zeros_like(x)),
}


@pytest.mark.parametrize("values", [[INF, 1.0, 2.0], [NAN, 1.0, 2.0], [1.0, INF, -INF]])
def test_nan_and_infinity_spread(values):
    for name, function in SPREADING.items():
        found = []
        for m in (torch, wf):
            x = m.tensor(values, requires_grad=True)
            found.append(m.autograd.grad(function(m, x), x)[0].numpy(force=True))
        np.testing.assert_allclose(found[1], found[0], rtol=1e-6, err_msg=name)


def test_forward_over_reverse():
    points = [p for p in POINTS if abs(p) < 700]
    for name in ("huber", "smooth l1", "i0", "i1", "log_ndtr", "elu", "logit eps", "sinc", "entr"):
        (slopes, curves) = ours([ONE[name]], [points], "float64")[0]
        function, x = ONE[name](wf), wf.tensor(points, dtype=wf.float64)
        slope = wf.func.grad(lambda v, function=function: function(v).sum())
        value, tangent = wf.func.jvp(slope, (x,), (wf.ones_like(x),))
        np.testing.assert_allclose(value.numpy(), slopes, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(tangent.numpy(), curves, rtol=1e-12, err_msg=name)
