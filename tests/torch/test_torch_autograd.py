"""Gradients of eager programs against PyTorch's: random programs, hooks, accumulation, orders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf

torch = pytest.importorskip("torch")

UNARY = ["tanh", "exp", "sigmoid", "abs", "neg", "square", "sin", "relu", "clone", "detach"]
BINARY = ["add", "sub", "mul", "maximum", "matmul"]
SIDE = 3


@st.composite
def programs(draw):
    """Steps on a growing list of square matrices, of which the first two are leaves."""
    steps = []
    for count in range(2, 2 + draw(st.integers(1, 9))):
        a, b = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        kind = draw(
            st.sampled_from(
                ["unary", "unary", "binary", "binary", "row", "mean", "inplace", "constant"]
            )
        )
        name = draw(st.sampled_from(UNARY if kind == "unary" else BINARY))
        steps.append((kind, name, a, b))
    hooks = draw(st.lists(st.integers(2, len(steps) + 1), max_size=3))
    retained = draw(st.lists(st.integers(2, len(steps) + 1), max_size=2))
    return steps, sorted(set(hooks)), sorted(set(retained))


def run(library, program, leaves, seen):
    steps, hooks, retained = program
    values = list(leaves)
    for kind, name, a, b in steps:
        x, y = values[a], values[b]
        if kind == "unary":
            z = getattr(library, name)(x)
        elif kind == "binary":
            z = getattr(library, name)(x, y)
        elif kind == "row":
            z = x[1:2] * y
        elif kind == "constant":
            with library.no_grad():
                z = x * y
            z = z * (x.detach() + y)
        elif kind == "mean":
            z = x - x.mean(0)
        else:
            z = x * 1
            z.mul_(0.5)
            z[0] = y[1] * 2
        values.append(z * 0.5)
    for number, i in enumerate(hooks):
        if values[i].requires_grad:
            values[i].register_hook(lambda g, i=i: seen.append((i, g.detach().numpy().copy())))
            values[i].register_hook(lambda g, n=number: g * (2 + n))
    kept = [values[i] for i in retained if values[i].requires_grad]
    for x in kept:
        x.retain_grad()
    return values, kept


def leaves_for(library, arrays):
    return [library.tensor(a, requires_grad=True) for a in arrays]


def close(a, b):
    if a is None or b is None:
        return a is None and b is None
    return np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-8, atol=1e-10)


@at_most(40)
@given(program=programs(), seed=st.integers(0, 99), twice=st.booleans())
def test_drawn_programs(program, seed, twice):
    arrays = np.random.default_rng(seed).uniform(-1, 1, (2, SIDE, SIDE))
    found = []
    for library in (wf, torch):
        seen = []
        leaves = leaves_for(library, arrays)
        values, kept = run(library, program, leaves, seen)
        loss = sum((v * v).sum() for v in values)
        if loss.requires_grad:
            loss.backward(retain_graph=twice)
            if twice:
                loss.backward()
        found.append((leaves, kept, values[-1], seen))
    (ours, kept, last, seen), (theirs, their_kept, their_last, their_seen) = found
    assert close(last, their_last)
    for a, b in zip([*ours, *kept], [*theirs, *their_kept], strict=True):
        assert close(a.grad, b.grad)
    assert len(seen) == len(their_seen)
    for (i, a), (j, b) in zip(sorted(seen, key=str), sorted(their_seen, key=str), strict=True):
        assert i == j and np.allclose(a, b)


@at_most(15)
@given(program=programs(), seed=st.integers(0, 99))
def test_second_order(program, seed):
    arrays = np.random.default_rng(seed).uniform(-1, 1, (2, SIDE, SIDE))
    steps, _, _ = program
    found = []
    for library in (wf, torch):
        leaves = leaves_for(library, arrays)
        values, _ = run(library, (steps, [], []), leaves, [])
        loss = (values[-1] * values[-1]).sum() + (leaves[0] * leaves[1] ** 2).sum()
        slopes = library.autograd.grad(loss, leaves, create_graph=True)
        total = sum((g * g).sum() for g in slopes)
        found.append((slopes, library.autograd.grad(total, leaves)))
    for ours, theirs in zip(*found, strict=True):
        assert all(close(a, b) for a, b in zip(ours, theirs, strict=True))


def training(library, hooked):
    """A few steps of plain gradient descent with hooks, as users write them."""
    wf.manual_seed(0)
    rng = np.random.default_rng(1)
    x = library.tensor(rng.standard_normal((8, 4)))
    w = library.tensor(rng.standard_normal((4, 3)), requires_grad=True)
    b = library.zeros(3, dtype=library.float64, requires_grad=True)
    norms = []
    if hooked:
        w.register_hook(lambda g: g.clamp(-0.1, 0.1))
        b.register_post_accumulate_grad_hook(lambda p: norms.append(float(p.grad.abs().sum())))
    for _ in range(6):
        for part in (x[:4], x[4:]):  # gradients accumulate
            ((part @ w + b).tanh() ** 2).mean().backward()
        with library.no_grad():
            w.sub_(0.5 * w.grad)
            b -= 0.5 * b.grad
        w.grad = None
        b.grad.zero_()
    return w.detach().numpy(), b.detach().numpy(), norms


@pytest.mark.parametrize("hooked", [False, True])
def test_training_by_hand(hooked):
    for ours, theirs in zip(training(wf, hooked), training(torch, hooked), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-10)


def square_with_wrong_gradient(library):
    class Square(library.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * scale, x + 1

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return 3 * g * x * ctx.scale + h * h, None

    return Square.apply


def test_functions_of_the_user():
    found = []
    for library in (wf, torch):
        x = library.tensor([1.0, 2.0], requires_grad=True)
        y, z = square_with_wrong_gradient(library)(x * 2, 5.0)
        (g,) = library.autograd.grad((y * y + z).sum(), x, create_graph=True)
        (h,) = library.autograd.grad(g.sum(), x, retain_graph=True)
        found.append([g.tolist(), h.tolist(), library.autograd.grad(z.sum(), x)[0].tolist()])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
@pytest.mark.parametrize(
    "row",
    [[1.0, 2.0, 2.0, 2.0, 3.0], [1.0, float("nan"), float("nan"), 2.0], [float("nan")] * 2, [3.0]],
)
def test_equal_elements_share_the_gradient_of_a_whole_tensors_extreme(name, row):
    slopes = []
    for library in (wf, torch):
        x = library.tensor([row, row[::-1]], requires_grad=True)
        (getattr(x, name)() * 3).backward()
        slopes.append(x.grad.numpy())
    np.testing.assert_allclose(*slopes)


def test_second_derivatives_of_products_at_places_with_zeros():
    def scattered(x, source):
        places = wf.tensor([0, 0, 0, 1, 1])
        return x.scatter_reduce(0, places, source, "prod")

    x = wf.tensor([2.0, 0.0, 5.0], dtype=wf.float64, requires_grad=True)
    for row in ([0.0, 0.0, 3.0, 0.5, 2.0], [0.0, 4.0, 3.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0]):
        source = wf.tensor(row, dtype=wf.float64, requires_grad=True)
        assert wf.autograd.gradcheck(scattered, (x, source))
        assert wf.autograd.gradgradcheck(scattered, (x, source))


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_equal_elements_share_the_gradient_in_each_example(name):
    rows = wf.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [float("nan")] * 3])

    def found(row):
        return getattr(row, name)()

    apart = [wf.func.grad(found)(row).tolist() for row in rows]
    assert wf.func.vmap(wf.func.grad(found))(rows).tolist() == apart
    assert wf.func.grad(lambda x: wf.func.vmap(found)(x).sum())(rows).tolist() == apart
