"""Functional transformations against finite differences and each other, in any order of nesting."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import func
from weft.errors import (
    DTypeError,
    GradientError,
    OutOfRangeError,
    ShapeError,
    TracerError,
    TreeError,
)
from weft.func.tree import flatten


def array(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 1.5, shape)


def tensor(*shape, seed=0):
    return wf.tensor(array(*shape, seed=seed), dtype=wf.float64)


def differences(f, x, eps=1e-6):
    """The Jacobian of f at x by central differences."""
    x = np.array(x, np.float64)
    columns = []
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = eps
        up, down = f(wf.tensor(x + step)), f(wf.tensor(x - step))
        columns.append((up.numpy() - down.numpy()) / (2 * eps))
    stacked = np.stack(columns, -1)
    return stacked.reshape(*stacked.shape[:-1], *x.shape)


def scalar(x):
    return (wf.exp(x) * x * x.sum()).sum()


def vector(x):
    return wf.tanh(x) * x.sum() + x[0]


FUNCTIONS = [
    scalar,
    lambda x: (x @ wf.ones(3, dtype=wf.float64)) ** 2,
    lambda x: wf.log(x).sum() * wf.sqrt(x)[1],
    lambda x: wf.logsumexp(x * 3.0, 0),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_first_and_second_derivatives(f):
    x = tensor(3)
    np.testing.assert_allclose(func.grad(f)(x).numpy(), differences(f, x), rtol=1e-5)
    second = differences(func.grad(f), x)
    np.testing.assert_allclose(func.hessian(f)(x).numpy(), second, rtol=1e-4, atol=1e-6)
    forward = func.jacfwd(func.grad(f))(x)
    np.testing.assert_allclose(forward.numpy(), second, rtol=1e-4, atol=1e-6)


def test_jacobians_agree():
    x = tensor(4)
    wanted = differences(vector, x)
    np.testing.assert_allclose(func.jacobian(vector)(x).numpy(), wanted, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(func.jacfwd(vector)(x).numpy(), wanted, rtol=1e-5, atol=1e-8)


def test_jvp_and_vjp_are_transposes():
    x, t, g = tensor(4), tensor(4, seed=1), tensor(4, seed=2)
    y, moved = func.jvp(vector, (x,), (t,))
    z, pull = func.vjp(vector, x)
    np.testing.assert_array_equal(y.numpy(), z.numpy())
    left, right = (g * moved).sum(), (pull(g)[0] * t).sum()
    np.testing.assert_allclose(left.item(), right.item(), rtol=1e-12)


def test_a_vjp_may_be_pulled_twice():
    _, pull = func.vjp(vector, tensor(3))
    one, two = pull(tensor(3)), pull(tensor(3))
    np.testing.assert_array_equal(one[0].numpy(), two[0].numpy())


@pytest.mark.parametrize("order", range(1, 6))
def test_derivatives_of_any_order(order):
    f = lambda x: x**5  # noqa: E731
    coefficient = np.prod([5 - i for i in range(order)])
    for _ in range(order):
        f = func.grad(f)
    value = f(wf.tensor(1.5, dtype=wf.float64)).item()
    np.testing.assert_allclose(value, coefficient * 1.5 ** (5 - order), rtol=1e-12)


def test_forward_over_reverse_over_forward():
    def f(x):
        return wf.exp(x) * x

    def along(x):
        return func.jvp(f, (x,), (wf.ones_like(x),))[1]

    x = wf.tensor(0.7, dtype=wf.float64)
    found = func.jvp(func.grad(along), (x,), (wf.ones_like(x),))[1]
    np.testing.assert_allclose(found.item(), np.exp(0.7) * (0.7 + 3), rtol=1e-12)


def test_perturbations_are_not_confused():
    # d/dx (x * d/dy (x + y)) is 1, and 2 for one who confuses the two.
    def inner(x):
        return x * func.grad(lambda y: x + y)(wf.tensor(1.0))

    assert func.grad(inner)(wf.tensor(1.0)).item() == 1.0


def test_an_inner_derivative_by_something_else():
    def f(x):
        z = x * x
        return func.jacobian(lambda y: y * z * z)(wf.ones(2, dtype=wf.float64)).sum()

    x = tensor(2)
    np.testing.assert_allclose(func.grad(f)(x).numpy(), differences(f, x), rtol=1e-5)


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = "layer"


@pytest.mark.parametrize(
    "build",
    [
        lambda w, b: {"v": w, "b": [], "w": b},
        lambda w, b: [w, (b,)],
        lambda w, b: Pair(w, {"deep": [b]}),
    ],
)
def test_arguments_may_be_nested(build):
    w, b = tensor(3), tensor(3, seed=1)

    def f(parameters):
        leaves, _ = flatten(parameters)
        return (leaves[0] * leaves[0] * leaves[1]).sum()

    value, found = func.value_and_grad(f)(build(w, b))
    leaves, tree = flatten(found)
    assert tree == flatten(build(w, b))[1]
    np.testing.assert_allclose(leaves[0].numpy(), 2 * w.numpy() * b.numpy())
    np.testing.assert_allclose(leaves[1].numpy(), w.numpy() ** 2)
    np.testing.assert_allclose(value.item(), (w.numpy() ** 2 * b.numpy()).sum())


def test_several_arguments_and_aux():
    def f(x, y, scale):
        return (x * y).sum() * scale, {"scale": scale}

    (gx, gs), aux = func.grad(f, argnums=(0, 2), has_aux=True)(tensor(2), tensor(2), tensor())
    assert gx.shape == (2,)
    assert gs.shape == ()
    assert set(aux) == {"scale"}


def test_python_may_read_values_under_grad():
    def f(x):
        return x * 2.0 if x.item() > 0 else x * 3.0

    assert func.grad(f)(wf.tensor(1.0)).item() == 2.0
    assert func.grad(f)(wf.tensor(-1.0)).item() == 3.0


def test_results_need_no_gradient_outside():
    x = tensor(3)
    assert not func.grad(scalar)(x).requires_grad
    assert not func.vjp(vector, x)[0].requires_grad
    leaf = tensor(3).requires_grad_()
    g = func.grad(lambda y: (y * y * leaf).sum())(x)
    g.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * x.numpy())


# vmap


def test_vmap_is_a_loop():
    xs, w = tensor(5, 3), tensor(3, seed=1)
    found = func.vmap(lambda x, w: wf.tanh(x * w).sum(), in_axes=(0, None))(xs, w)
    wanted = [wf.tanh(x * w).sum().item() for x in xs]
    np.testing.assert_allclose(found.numpy(), wanted)


def test_jacobians_a_few_columns_at_a_time():
    x = tensor(5)
    for chunk in (1, 2, 7):
        found = func.jacfwd(wf.sin, chunk_size=chunk)(x).numpy()
        np.testing.assert_allclose(found, np.diag(np.cos(x.numpy())))


@pytest.mark.parametrize("run", [
    lambda x: func.jacobian(lambda x: x * 1j)(x),
    lambda x: func.jacobian(lambda z: z.abs())(x + 1j),
    lambda x: func.jacfwd(lambda z: z.conj())(x + 1j),
])  # fmt: skip
def test_jacobians_are_of_real_numbers(run):
    with pytest.raises(DTypeError, match=r"expected real (results|arguments), got complex128"):
        run(tensor(2))


def test_derivatives_without_history_are_not_differentiated():
    x, inside = tensor(3), wf.autograd.functional
    with pytest.raises(GradientError, match="jacobian: its result has no gradient, and one is"):
        func.grad(lambda x: inside.jacobian(wf.sin, x).sum())(x)
    with pytest.raises(GradientError, match="say create_graph=True"):
        func.grad(lambda w: inside.vjp(lambda y: w * y, x, x)[1].sum())(x)
    found = func.grad(lambda x: inside.jacobian(wf.sin, x, create_graph=True).sum())(x)
    np.testing.assert_allclose(found.numpy(), -np.sin(x.numpy()))
    found = func.grad(lambda w: (w * inside.jacobian(wf.sin, x)).sum())(x)
    np.testing.assert_allclose(found.numpy(), np.cos(x.numpy()))


def test_batch_norm_of_each_example():
    net = wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.BatchNorm1d(2))
    assert func.replace_all_batch_norm_modules_(net) is net
    xs = wf.randn(4, 5, 3)
    each = np.stack([net(x).detach().numpy() for x in xs])
    np.testing.assert_allclose(func.vmap(net)(xs).detach().numpy(), each, rtol=1e-4, atol=1e-5)


def test_vmap_axes():
    xs = tensor(2, 5, 3)
    found = func.vmap(lambda x: {"twice": x * 2, "sum": x.sum()}, in_axes=1, out_axes=-1)(xs)
    np.testing.assert_allclose(found["twice"].numpy(), np.moveaxis(xs.numpy() * 2, 1, -1))
    np.testing.assert_allclose(found["sum"].numpy(), xs.numpy().sum((0, 2)))


def test_gradients_of_each_example():
    w, xs = tensor(3), tensor(6, 3, seed=1)

    def loss(w, x):
        return wf.tanh((w * x).sum())

    found = func.vmap(func.grad(loss), in_axes=(None, 0))(w, xs)
    wanted = [func.grad(loss)(w, x).numpy() for x in xs]
    np.testing.assert_allclose(found.numpy(), np.stack(wanted), rtol=1e-12)


def test_vmap_nests_and_has_gradients():
    xs, ys = tensor(4, 3), tensor(5, 3, seed=1)

    def table(xs):
        outer = func.vmap(lambda x: func.vmap(lambda y: (x * y).sum() ** 2)(ys))
        return outer(xs)

    np.testing.assert_allclose(table(xs).numpy(), (xs.numpy() @ ys.numpy().T) ** 2)
    found = func.grad(lambda x: table(x).sum())(xs).numpy()
    np.testing.assert_allclose(found, 2 * (xs.numpy() @ ys.numpy().T) @ ys.numpy())


@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_examples_draw_as_is_said(chunk):
    def noisy(x):
        return x + wf.rand(())

    wf.manual_seed(0)
    different = func.vmap(noisy, randomness="different", chunk_size=chunk)
    assert len(set(different(wf.zeros(4)).tolist())) == 4
    same = func.vmap(noisy, randomness="same", chunk_size=chunk)(wf.zeros(4)).tolist()
    assert len(set(same)) == 1
    with pytest.raises(TracerError, match="say randomness='different' or 'same'"):
        func.vmap(noisy)(wf.zeros(4))


def test_what_is_no_tensor_has_no_axis():
    y, name = func.vmap(lambda x: (x, "name"), out_axes=(0, None))(tensor(2))
    assert y.shape == (2,) and name == "name"
    for extra in 3, "name":
        with pytest.raises(TreeError, match=f"return tensors, got {type(extra).__name__}"):
            func.vmap(lambda x: (x, extra))(tensor(2))  # noqa: B023


def test_lists_and_tuples_of_axes_differ():
    xs = [tensor(2), tensor(2)]
    assert func.vmap(lambda z: z[0] + z[1], ([0, 0],))(xs).shape == (2,)
    for axes in ((0, 0),), ([0],):
        with pytest.raises(TreeError, match="expected one for each part"):
            func.vmap(lambda z: z[0] + z[1], axes)(xs)


def test_constants_of_any_type_are_repeated():
    for dtype in wf.int64, wf.bool, wf.float32:
        found = func.vmap(lambda x: wf.ones((), dtype=dtype))(tensor(3))  # noqa: B023
        assert found.dtype == dtype and found.tolist() == [1, 1, 1]


def test_jacobians_of_gradient_rules_that_read_values():
    class Looking(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if g.nonzero().numel() else g

    jacobian = wf.autograd.functional.jacobian
    assert jacobian(Looking.apply, tensor(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    with pytest.raises(TracerError, match="while a function is traced"):
        jacobian(Looking.apply, tensor(2), vectorize=True)


# jit


@pytest.mark.parametrize(
    "nest",
    [
        lambda f: func.jit(func.grad(f)),
        lambda f: func.grad(func.jit(f)),
        lambda f: func.jit(func.grad(func.jit(f))),
        lambda f: func.grad(func.checkpoint(f)),
        lambda f: func.checkpoint(func.grad(f)),
    ],
)
def test_any_order_of_nesting(nest):
    x = tensor(3)
    np.testing.assert_allclose(nest(scalar)(x).numpy(), func.grad(scalar)(x).numpy(), rtol=1e-12)


def test_reading_a_traced_value_says_what_to_do():
    with pytest.raises(TracerError, match=r"where\(\).*test_func\.py"):
        func.jit(lambda x: x * 2 if x > 0 else x)(wf.tensor(1.0))


# checkpoint, custom gradients, primitives


def test_checkpoint_is_exact():
    def block(x):
        for _ in range(4):
            x = wf.tanh(x * 1.1) + x
        return x

    x = tensor(50)
    plain = func.value_and_grad(lambda x: block(x).sum())(x)
    again = func.value_and_grad(lambda x: func.checkpoint(block)(x).sum())(x)
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_gradient_of_ones_own():
    @func.custom_vjp
    def f(x, y):
        return {"product": x * y}

    def bwd(residuals, g):
        y = residuals[1]
        return g["product"] * y * 10.0, None

    f.defvjp(lambda x, y: ({"product": x * y}, (x, y)), bwd)
    x, y = tensor(3), tensor(3, seed=1)
    gx, gy = func.grad(lambda x, y: f(x, y)["product"].sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(gx.numpy(), y.numpy() * 10)
    np.testing.assert_array_equal(gy.numpy(), np.zeros(3))
    each = func.vmap(func.grad(lambda x, y: f(x, y)["product"]), in_axes=(0, 0))(x, y)
    np.testing.assert_allclose(each.numpy(), y.numpy() * 10)


def test_a_primitive_in_numpy():
    @func.primitive
    def logsumexp(x):
        top = np.max(x)
        return top + np.log(np.sum(np.exp(x - top)))

    func.defvjp(logsumexp, lambda ans, x: lambda g: g * wf.exp(x - ans))
    x = tensor(4)
    wanted = np.exp(x.numpy()) / np.exp(x.numpy()).sum()
    np.testing.assert_allclose(func.grad(logsumexp)(x).numpy(), wanted)
    second = func.hessian(logsumexp)(x).numpy()
    np.testing.assert_allclose(second, np.diag(wanted) - np.outer(wanted, wanted), atol=1e-12)


def test_a_primitive_whose_gradient_is_in_numpy():
    @func.primitive
    def cubed(x):
        return x**3

    func.defvjp(cubed, lambda ans, x: lambda g: np.asarray(g) * 3 * np.asarray(x) ** 2)
    x = tensor(3)
    found = func.grad(lambda x: cubed(x).sum())(x)
    np.testing.assert_allclose(found.numpy(), 3 * x.numpy() ** 2)
    once = func.grad(lambda x: cubed(x).sum())
    for again in (
        lambda: func.grad(lambda x: once(x).sum())(x),
        lambda: func.jvp(cubed, (x,), (x,))[1],
    ):
        with pytest.raises(GradientError, match="cubed: its gradient rule is called with values"):
            again().numpy()


def test_complex_values_between_real_ones_have_gradients():
    def size(x):
        z = wnp.exp(x * 1j) * x
        return wnp.sum(wnp.abs(z) ** 2)

    x = wnp.asarray([0.5, -2.0])
    np.testing.assert_allclose(func.grad(size)(x).numpy(), 2 * x.numpy(), atol=1e-12)
    with pytest.raises(DTypeError, match="grad: expected the function to return a real number"):
        func.grad(lambda x: wnp.sum(x * 1j))(x)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: func.grad(vector)(tensor(3)), GradientError, "one scalar"),
        (lambda: func.grad(scalar)(wf.arange(3)), GradientError, "floating arguments"),
        (lambda: func.grad(scalar, 2)(tensor(3)), GradientError, "argnums below 1"),
        (lambda: func.vjp(vector, tensor(3))[1](tensor(2)), ShapeError, "cotangent of shape"),
        (lambda: func.vmap(lambda x, y: x)(tensor(2), tensor(3)), ShapeError, "one length"),
        (lambda: func.vmap(lambda x: x, in_axes=None)(tensor(2)), ShapeError, "none is mapped"),
        (lambda: func.vmap(lambda x: x, in_axes=3)(tensor(2)), ShapeError, "an axis of a tensor"),
        (lambda: func.vmap(lambda x: x, in_axes="a")(tensor(2)), ShapeError, "a number or a tuple"),
        (lambda: func.vmap(lambda x: x, out_axes=1)(tensor(2)), OutOfRangeError, "from -1 to 0"),
        (lambda: func.vmap(lambda x: x, 0, 0, "other"), ValueError, "expected randomness diff"),
        (
            lambda: func.vmap(lambda x: x + wf.rand(()), randomness="error")(tensor(2)),
            TracerError,
            "the function draws random numbers",
        ),
        (lambda: func.jvp(vector, (tensor(3),), (tensor(3), 1)), TreeError, "structure"),
        (lambda: func.custom_vjp(vector)(tensor(3)), GradientError, "defvjp"),
    ],
)
def test_errors(run, error, message):
    with pytest.raises(error, match=message):
        run()


@pytest.mark.parametrize("wrapped", [func.jit, func.vmap, func.jacrev])
def test_complex_numbers_inside_are_interpreted_however_often(wrapped):
    f = wrapped(lambda x: (wf.complex(x, x * x) ** 2).real.sum())
    x = tensor(1, 1)
    first = f(x).numpy()
    for _ in range(4):
        np.testing.assert_array_equal(f(x).numpy(), first)


def test_what_has_no_derivative_raises():
    with pytest.raises(TypeError, match="a real number, got bool, which has no derivative"):
        wf.func.grad(lambda x: (x > 0).all())(wf.ones(2))
    with pytest.raises(TypeError, match="got int64"):
        wf.func.value_and_grad(lambda x: x.argmax())(wf.ones(2))
    slope = wf.func.grad(wf.func.primitive(lambda x: 2 * x))(wf.ones(()))
    with pytest.raises(NotImplementedError, match="has no gradient by argument 0"):
        slope.item()


def test_calls_alike_share_a_graph() -> None:
    x = wf.arange(6.0).reshape(3, 2)

    def slopes(w: wf.Tensor, scale: float, stops: bool) -> list[list[float]]:
        def f(x: wf.Tensor) -> wf.Tensor:
            y = (w * x).sum()
            with wf.set_grad_enabled(not stops):
                z = y * scale
            return z + y * y

        return func.vmap(func.grad(f))(x).tolist()

    for w in (wf.tensor([1.0, 2.0]), wf.tensor([3.0, -1.0])):
        for scale in (2.0, 5.0):
            for stops in (False, True, False):
                a, b = w.tolist()
                rows = [2 * (a * p + b * q) + (0 if stops else scale) for p, q in x.tolist()]
                assert slopes(w, scale, stops) == [[a * r, b * r] for r in rows]
