"""Every operation on tensors against PyTorch: values, dtypes, shapes and gradients."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

from tests.torch.tensor_case import agree, draw, seeds, shapes  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
few = at_most(2, phases=[Phase.generate])


ANYWHERE = [
    "abs", "absolute", "neg", "negative", "positive", "sign", "sgn", "square", "exp", "exp2",
    "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan", "arctan", "arcsinh",
    "erf", "erfc", "sigmoid", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit",
    "relu", "sinc", "deg2rad", "rad2deg", "floor", "ceil", "trunc", "fix", "round", "frac",
    "nan_to_num", "reciprocal",
]  # fmt: skip
POSITIVE = [
    "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh", "arccosh",
]  # fmt: skip
INSIDE = [
    "asin", "acos", "atanh", "arcsin", "arccos", "arctanh", "erfinv",
]  # fmt: skip


@pytest.mark.parametrize("name", ANYWHERE + POSITIVE + INSIDE + ["logit"])
@given(shapes, seeds)
@few
def test_functions_of_one_number(name, shape, seed):
    low, high = (-1.9, 1.9)
    if name in POSITIVE:
        low, high = 1.1, 3.0
    if name in INSIDE:
        low, high = -0.9, 0.9
    if name == "logit":
        low, high = 0.1, 0.9
    x = draw(shape, low, high, seed)
    agree(lambda m, x: getattr(m, name)(x), x)
    agree(lambda m, x: getattr(x, name)(), x)
    if name not in ("reciprocal", "logit", "frac"):
        whole = draw(shape, 1, 3, seed).round().astype(np.int64)
        inside = name in INSIDE or name == "positive"
        agree(lambda m, x: getattr(m, name)(x), whole * 0 if inside else whole, grad=False)


BOTH = [
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide",
    "remainder", "fmod", "pow", "maximum", "minimum", "fmax", "fmin", "atan2", "arctan2", "hypot",
    "logaddexp", "logaddexp2", "copysign", "eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "isclose",
    "xlogy", "heaviside", "float_power",
]  # fmt: skip
FLAT = ("floor_divide", "heaviside")
OF_TENSORS = [
    "maximum", "minimum", "fmax", "fmin", "atan2", "arctan2", "logical_and", "logical_or",
    "logical_xor", "isclose",
]  # fmt: skip
REALS = [
    "logaddexp", "logaddexp2", "hypot", "xlogy", "heaviside", "nextafter",
]  # fmt: skip


@pytest.mark.parametrize("name", BOTH)
@given(st.sampled_from([((3, 2), (3, 2)), ((3, 2), (2,)), ((2, 1), (1, 3)), ((), (4,))]), seeds)
@few
def test_functions_of_two_numbers(name, dims, seed):
    a = draw(dims[0], 0.3, 3, seed)
    b = draw(dims[1], 0.4, 2.9, seed + 1)
    agree(lambda m, x, y: getattr(m, name)(x, y), a, b, grad=name not in FLAT)
    agree(lambda m, x, y: getattr(x, name)(y), a, b, grad=name not in FLAT)
    if name not in REALS:
        whole = np.arange(1, 1 + b.size).reshape(b.shape)
        agree(
            lambda m, x, y: getattr(m, name)(x, y), np.ceil(a).astype(np.int64), whole, grad=False
        )
        if name != "isclose":
            agree(lambda m, x, y: getattr(m, name)(x, y), a, whole, grad=name not in FLAT)
        if name not in OF_TENSORS:
            agree(lambda m, x: getattr(x, name)(2), a, grad=name not in FLAT)


BITS = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
]  # fmt: skip


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_bits(name, dtype):
    if "shift" in name and dtype == "bool":
        dtype = "int16"
    x = np.arange(6).reshape(2, 3).astype(dtype)
    y = np.array([1, 3, 0]).astype(dtype)
    agree(lambda m, x, y: getattr(m, name)(x, y), x, y, grad=False)
    agree(lambda m, x, y: (~x, x ^ y, x & y, x | y), x, y, grad=False)


OPERATORS = [
    lambda m, x, y: (x + y, x - y, x * y, x / y, x % y.detach(), x**y, -x, +x, abs(x)),
    lambda m, x, y: (2 + x, 2.5 - x, 2 * x, 2 / x, 2**x, x + True, x % 2),
    lambda m, x, y: (x.detach() // y.detach(), 7 // x.detach(), 7 % x.detach(), divmod(7, 2)),
    lambda m, x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, x < 1, x > 1, x == 1),
    lambda m, x, y: (x**2, x**3, x**0.5, x**-1, x**0, x**1.7, x**-2, x**-0.5, x**4),
    lambda m, x, y: (m.add(x, y, alpha=2), m.sub(x, y, alpha=3), m.rsub(x, y), x.add(y, alpha=2)),
    lambda m, x, y: (
        m.div(x, y, rounding_mode="trunc"),
        m.div(x, y, rounding_mode="floor"),
    ),
    lambda m, x, y: (x.clamp(0.5, 1.5), x.clamp(min=1), x.clamp(max=1), m.clip(x, 0.2, 1)),
    lambda m, x, y: (m.clamp(x, min=y), m.clamp(x, y, 2 * y), m.clamp_min(x, 1), x.clamp_max(1)),
    lambda m, x, y: (m.where(x > y, x, y), m.where(x > 1, x, 0), x.where(x > 1, y)),
    lambda m, x, y: (m.lerp(x, y, 0.3), x.lerp(y, y), m.addcmul(x, y, y, value=0.5)),
    lambda m, x, y: (m.addcdiv(x, y, y + 1, value=2), x.masked_fill(x > 1, 7.0)),
    lambda m, x, y: (
        x.masked_fill(y > 1, -1),
        m.round(x, decimals=1),
        m.round(x * 10, decimals=-1),
    ),
    lambda m, x, y: (m.nan_to_num(x / (x * 0)), x.nan_to_num(nan=1.0)),
]


@pytest.mark.parametrize("number", range(len(OPERATORS)))
@given(seeds)
@few
def test_operators(number, seed):
    agree(OPERATORS[number], draw((3, 4), 0.3, 2.8, seed), draw((4,), 0.45, 2.7, seed + 1))


REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "std",
    "var",
    "logsumexp",
    "all",
    "any",
    "count_nonzero",
    "nansum",
    "nanmean",
    "norm",
]


@pytest.mark.parametrize("name", REDUCTIONS)
@given(shapes, seeds, st.data())
@few
def test_reductions(name, shape, seed, data):
    x = draw(shape, 0.5, 2, seed)
    if name != "logsumexp" and (x.size > 1 or name not in ("std", "var")):
        agree(lambda m, x: getattr(x, name)(), x)
    if not shape:
        return
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    keep = data.draw(st.booleans())
    if name in ("std", "var") and shape[axis] == 1:
        return
    if name == "count_nonzero":
        agree(lambda m, x: m.count_nonzero(x, dim=axis), x)
        return
    agree(lambda m, x: getattr(m, name)(x, dim=axis, keepdim=keep), x)
    agree(lambda m, x: getattr(x, name)(dim=axis, keepdim=keep), x)
    if name not in ("prod", "std", "var"):
        axes = tuple(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, 3))])
        agree(lambda m, x: getattr(m, name)(x, dim=axes, keepdim=keep), x)
    if name in ("sum", "prod", "amax", "any", "all", "count_nonzero"):
        whole = (x * 3).astype(np.int32)
        agree(lambda m, x: getattr(m, name)(x, dim=axis), whole, grad=False)
        agree(lambda m, x: getattr(m, name)(x, dim=axis), whole > 3, grad=False)


OF_AXES = [
    lambda m, x, d: (x.max(d), x.min(d), x.max(), x.min(), x.max(d, True), m.max(x, d).values),
    lambda m, x, d: (x.argmax(d), x.argmin(d), x.argmax(), m.argmin(x), x.argmax(d, True)),
    lambda m, x, d: (x.softmax(d), m.log_softmax(x, d), m.softmax(x, dim=d, dtype=m.float64)),
    lambda m, x, d: (
        x.sort(d),
        x.sort(d, True),
        x.argsort(d),
        m.argsort(x, dim=d, descending=True),
    ),
    lambda m, x, d: (m.topk(x, 2, d), x.topk(1, d, largest=False), x.kthvalue(2, d)),
    lambda m, x, d: (x.median(d), x.median(), m.median(x, d, True), x.kthvalue(1, d, True)),
    lambda m, x, d: (x.cumsum(d), x.cumprod(d), x.cummax(d), x.cummin(d), m.logcumsumexp(x, d)),
    lambda m, x, d: (m.aminmax(x), m.aminmax(x, dim=d), m.max(x, x * 0.5), m.std_mean(x, d)),
    lambda m, x, d: (
        x.var(d, unbiased=False),
        x.std(d, correction=0),
        m.var_mean(x, d),
        x.std(False),
    ),
    lambda m, x, d: (m.quantile(x, 0.3), m.quantile(x, 0.6, d), x.quantile(0.5, d, keepdim=True)),
    lambda m, x, d: (
        x.norm(1),
        x.norm(2, d),
        m.norm(x, float("inf"), d),
        x.norm(3, dim=d, keepdim=True),
    ),
    lambda m, x, d: (
        m.diff(x, dim=d),
        x.diff(2, d),
        x.flip(d),
        m.flip(x, (0, 1)),
        x.fliplr(),
        x.flipud(),
    ),
    lambda m, x, d: (
        x.roll(1, d),
        x.roll(2),
        m.roll(x, (1, -1), (0, 1)),
        m.rot90(x),
        x.rot90(3, (1, 0)),
    ),
    lambda m, x, d: (
        x.unsqueeze(d),
        x.unsqueeze(0).squeeze(0),
        x[None].squeeze(),
        x.unflatten(0, (3, -1)),
    ),
    lambda m, x, d: (
        x.chunk(2, d),
        x.split(2, d),
        x.split((1, 2), 0),
        x.unbind(d),
        x.tensor_split(2, d),
    ),
    lambda m, x, d: (x.narrow(d, 1, 2), x.select(d, 1), x.select(d, -1), m.narrow(x, d, 0, 1)),
    lambda m, x, d: (
        m.cat([x, x * 2], d),
        m.stack([x, x * 2], d),
        m.hstack([x, x]),
        m.vstack((x, x)),
    ),
    lambda m, x, d: (
        m.dstack((x, x)),
        m.column_stack((x, x)),
        m.block_diag(x, x),
        m.cat([x, x], dim=-1),
    ),
    lambda m, x, d: (
        x.repeat(2, 1),
        x.repeat(2, 1, 3),
        x.tile(2),
        m.tile(x, (2, 2)),
        x.repeat_interleave(2),
    ),
    lambda m, x, d: (x.repeat_interleave(2, d), m.repeat_interleave(x, 3, dim=d)),
    lambda m, x, d: (
        x.t(),
        x.T,
        x.mT,
        x.transpose(0, 1),
        x.permute(1, 0),
        m.permute(x, (1, 0)),
        x.swapaxes(0, 1),
    ),
    lambda m, x, d: (
        x.movedim(0, 1),
        m.moveaxis(x[None], 0, -1),
        x.view(4, 3),
        x.reshape(-1),
        x.flatten(),
        m.ravel(x),
    ),
    lambda m, x, d: (
        x[None].expand(5, -1, 4),
        x.expand_as(x[None]),
        m.broadcast_to(x, (2, 3, 4)),
        x.view_as(x),
    ),
    lambda m, x, d: (
        m.tril(x),
        m.triu(x, 1),
        x.tril(-1),
        m.diag(x),
        m.diag(x[0], 1),
        x.diagonal(),
        x.diagonal(1),
    ),
    lambda m, x, d: (
        m.diag_embed(x),
        m.diag_embed(x, 1),
        m.diag_embed(x, 0, 0, 2),
        x.trace(),
        m.atleast_3d(x),
    ),
    lambda m, x, d: (
        m.meshgrid(x[0], x[1], indexing="ij"),
        m.broadcast_tensors(x, x[0]),
        m.vander(x[0].detach()),
    ),
    lambda m, x, d: (
        m.bucketize(x, m.tensor([0.5, 1.0, 1.5])),
        m.searchsorted(m.tensor([0.5, 1.0]), x, right=True),
    ),
    lambda m, x, d: (
        x.nonzero(),
        m.nonzero(x > 1, as_tuple=True),
        m.argwhere(x > 1),
        m.where(x > 1),
    ),
    lambda m, x, d: (
        x.masked_select(x > 1),
        m.masked_select(x, x[0] > 1),
        x[x > 1],
        x.isnan().any(),
    ),
    lambda m, x, d: (
        m.histc(x, 4, 0, 2),
        m.bincount((x * 3).long().flatten()),
        m.isin(x, x[0]),
        x.detach().unique(),
    ),
    lambda m, x, d: (
        m.unique(x.detach().round(), return_inverse=True, return_counts=True),
        m.unique_consecutive(x.detach().round()),
    ),
    lambda m, x, d: (
        x.detach().heaviside(x.detach()),
        m.hypot(x, x),
        m.frac(x),
        m.allclose(x, x),
        m.equal(x, x),
        m.equal(x, x + 1),
    ),
]


@pytest.mark.parametrize("number", range(len(OF_AXES)))
@given(st.sampled_from([0, 1, -1]), seeds)
@few
def test_functions_along_an_axis(number, axis, seed):
    agree(lambda m, x: OF_AXES[number](m, x, axis), draw((3, 4), 0.25, 2.1, seed))


PRODUCTS = {
    "matmul": [((3, 4), (4, 2)), ((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 2)),
               ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3))],
    "mm": [((3, 4), (4, 2))], "bmm": [((2, 3, 4), (2, 4, 1))], "mv": [((3, 4), (4,))],
    "dot": [((4,), (4,))], "vdot": [((4,), (4,))], "inner": [((3, 4), (2, 4)), ((4,), (4,))],
    "outer": [((3,), (4,))], "ger": [((3,), (4,))], "kron": [((2, 3), (3, 1)), ((2,), (2, 2))],
    "tensordot": [((2, 3, 4), (3, 4, 2))], "cdist": [((3, 4), (2, 4)), ((2, 3, 4), (2, 2, 4))],
    "cross": [((2, 3), (2, 3))],
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
@given(seeds)
@few
def test_products(name, seed):
    for a, b in PRODUCTS[name]:
        x, y = draw(a, seed=seed), draw(b, seed=seed + 1)
        options = {"dim": -1} if name == "cross" else {}
        agree(lambda m, x, y, o=options: getattr(m, name)(x, y, **o), x, y)
        if hasattr(torch.Tensor, name):
            agree(lambda m, x, y, o=options: getattr(x, name)(y, **o), x, y)
    agree(lambda m, x, y: (x @ y, x @ y[:, 0]), draw((3, 4)), draw((4, 2)))
    agree(lambda m, x, y: x @ y, np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), grad=False)


ADDED = [
    ("addmm", (3, 2), (3, 4), (4, 2)),
    ("addmv", (3,), (3, 4), (4,)),
    ("addr", (3, 2), (3,), (2,)),
    ("baddbmm", (2, 3, 2), (2, 3, 4), (2, 4, 2)),
    ("addbmm", (3, 2), (2, 3, 4), (2, 4, 2)),
]


@pytest.mark.parametrize("name, c, a, b", ADDED)
def test_products_added(name, c, a, b):
    values = draw(c), draw(a, seed=1), draw(b, seed=2)
    agree(lambda m, x, y, z: getattr(m, name)(x, y, z), *values)
    agree(lambda m, x, y, z: getattr(m, name)(x, y, z, beta=0.5, alpha=2), *values)
    agree(lambda m, x, y, z: getattr(x, name)(y, z, beta=2), *values)


@pytest.mark.parametrize(
    "spec",
    ["ij,jk->ik", "ij,jk", "ij->ji", "ii->i", "ij,ij->", "...ij,...jk->...ik", "i j, j k -> i k"],
)
def test_einsum(spec):
    dims = [(3, 3), (3, 3)][: spec.count(",") + 1]
    agree(lambda m, *xs: m.einsum(spec, *xs), *[draw(d, seed=i) for i, d in enumerate(dims)])


POSITIONS = [
    lambda m, x, i, s: (
        x.gather(0, i),
        m.gather(x, 1, i),
        m.take_along_dim(x, i[:1], 1),
        x.take(i),
    ),
    lambda m, x, i, s: (
        x.scatter(0, i, s[:2, :2]),
        m.scatter_add(x, 1, i, s[:2, :2]),
        x.scatter(1, i, 2.0),
    ),
    lambda m, x, i, s: (
        x.scatter_reduce(0, i, s[:2, :2], "sum"),
        x.detach().scatter(1, i, s.detach(), reduce="add"),
    ),
    lambda m, x, i, s: (x.index_select(1, i[0]), x.index_add(0, i[:, 0], s[:2])),
    lambda m, x, i, s: (
        x.index_fill(1, i[0], 3.0),
        x.index_copy(1, m.tensor([2, 0]), x[:, :2] * 2),
    ),
    lambda m, x, i, s: (x.masked_scatter(x > 1, s * 3), x.scatter_reduce(1, i, s[:2, :2], "amax")),
]


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("number", range(len(POSITIONS)))
@given(seeds)
@few
def test_gathering_and_scattering(number, seed):
    rng = np.random.default_rng(seed)
    index = np.stack([rng.permutation(3), rng.permutation(3)], 1)[:2]
    x, source = draw((3, 4), 0.3, 1.3, seed), draw((4, 4), seed=seed + 1)
    agree(lambda m, x, s: POSITIONS[number](m, x, m.tensor(index), s), x, source)


def test_types_of_results():
    """Promotion between tensors, scalars and Python numbers of every kind is PyTorch's."""
    kinds = ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
    for a in kinds:
        for b in kinds:
            for shape in ((), (2,)):
                x, y = np.ones((2,), a), np.ones(shape, b)
                agree(lambda m, x, y: (x + y, x * y, m.maximum(x, y), x == y), x, y, grad=False)
                agree(lambda m, x, y: (x / y, x < y, m.where(x == y, x, y)), x, y, grad=False)
        agree(
            lambda m, x: (x + 1, x * 2.5, x + True, x / 2, x == 1.5, 2 - x * 1),
            np.ones(2, a),
            grad=False,
        )


ACTIVATIONS = [
    lambda f, x: (
        f.relu6(x * 4),
        f.selu(x),
        f.celu(x, 0.5),
        f.silu(x),
        f.softplus(x),
        f.elu(x, 0.7),
    ),
    lambda f, x: (f.gelu(x), f.gelu(x, approximate="tanh"), f.leaky_relu(x, 0.2), f.hardshrink(x)),
]


@pytest.mark.parametrize("number", range(len(ACTIVATIONS)))
def test_activations(number):
    def run(m, x):
        return ACTIVATIONS[number](torch.nn.functional if m is torch else m, x)

    agree(run, draw((3, 5), -3, 3))


def test_gamma_and_bessel_functions():
    agree(lambda m, x: (x.lgamma(), m.digamma(x), m.polygamma(1, x), m.i0(x)), draw((3, 4), 0.3, 3))
