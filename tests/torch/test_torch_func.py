"""Transformed functions, modules as functions and derivatives at a point against PyTorch."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import draw, same, seeds  # noqa: E402
from weft import func  # noqa: E402
from weft.autograd import functional  # noqa: E402
from weft.errors import GradientError, ShapeError, StateError, TreeError  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of what PyTorch itself uses
    pytest.mark.filterwarnings("ignore:Attempted to insert"),
]
few = at_most(3, phases=[Phase.generate])
sizes = st.integers(1, 4)


def entries(tree):
    """The leaves of nested dictionaries and tuples."""
    if isinstance(tree, dict):
        return [x for v in tree.values() for x in entries(v)]
    return [x for v in tree for x in entries(v)] if isinstance(tree, list | tuple) else [tree]


def several(x, y):
    return {"a": x * y.sum(), "b": (y * y, x.sum() * y[0])}


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,)])
@given(sizes, sizes, seeds)
@few
def test_jacobians_of_nested_results(name, argnums, m, n, seed):
    x, y = draw((m,), seed=seed), draw((n,), seed=seed + 1)
    ours = getattr(func, name)(several, argnums)(wf.tensor(x), wf.tensor(y))
    theirs = getattr(torch.func, name)(several, argnums)(torch.tensor(x), torch.tensor(y))
    assert list(ours) == list(theirs)
    assert isinstance(ours["a"], tuple) is isinstance(argnums, tuple)
    same(entries(ours), entries(theirs))


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_what_goes_with_a_jacobian(name):
    x = wf.arange(3.0)
    found, aux = getattr(func, name)(lambda x: (x * x, {"sum": x.sum()}), has_aux=True)(x)
    assert found.tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 4]] and aux["sum"].item() == 3.0


@given(sizes, seeds, st.booleans(), st.booleans())
@few
def test_derivatives_at_a_point(n, seed, single, create):
    x, y, v = (draw((n,), seed=seed + i) for i in range(3))

    def product(a, b=None):
        return (a * a).sum(0, keepdim=True) * (a if b is None else b)

    def scalar(a, b=None):
        return product(a, b).sum()

    def run(library, f, module):
        tensor = library.tensor
        at = tensor(x) if single else (tensor(x), tensor(y))
        along = tensor(v) if single else (tensor(v), tensor(v) * 2)
        return [
            module.jacobian(product, at, create_graph=create),
            module.hessian(scalar, at, create_graph=create),
            module.vjp(product, at, tensor(v), create_graph=create),
            module.jvp(product, at, along, create_graph=create),
            module.vhp(scalar, at, along, create_graph=create),
            module.hvp(scalar, at, along, create_graph=create),
        ]

    same(entries(run(wf, None, functional)), entries(run(torch, None, torch.autograd.functional)))


def test_a_point_without_directions():
    x = wf.tensor([1.0, 2.0])
    assert functional.vjp(lambda x: x.sum(), x)[1].tolist() == [1.0, 1.0]
    with pytest.raises(GradientError, match="jvp: expected v"):
        functional.jvp(lambda x: x, x)
    with pytest.raises(ShapeError, match="vjp: v: expected shapes"):
        functional.vjp(lambda x: x, x, wf.ones(3))
    with pytest.raises(GradientError, match="strict: a result does not depend on an input"):
        functional.jacobian(lambda x, y: x * 2, (x, x), strict=True)
    found = functional.jacobian(lambda x: x * x, x, strict=True, strategy="forward-mode")
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    w = wf.ones(2, requires_grad=True)
    functional.jacobian(lambda x: x * w, x, create_graph=True).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


@given(sizes, sizes, seeds)
@few
def test_ensembles(count, batch, seed):
    x = draw((batch, 3), seed=seed)
    theirs = [torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
              for _ in range(count)]  # fmt: skip
    ours = [wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.BatchNorm1d(2)).eval()
            for _ in range(count)]  # fmt: skip
    for a, b in zip(ours, theirs, strict=True):
        a.load_state_dict({k: v.numpy() for k, v in b.state_dict().items()})

    def run(library, module, models):
        parameters, buffers = module.stack_module_state(models)

        def one(p, b, x):
            return module.functional_call(models[0], (p, b), (x,))

        slopes = module.vmap(module.grad(lambda *a: one(*a).square().sum()), in_dims=(0, 0, None))
        found = slopes(parameters, buffers, library.tensor(x))
        return [found[name] for name in parameters]

    same(run(wf, func, ours), run(torch, torch.func, theirs))


def test_a_module_with_other_tensors():
    class Tied(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = wf.nn.Linear(2, 2, bias=False)
            self.second = wf.nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x, scale=1.0):
            return self.second(self.first(x)) * scale

    module, x, eye = Tied(), wf.ones(1, 2), wf.eye(2)
    given = {"first.weight": eye * 2}
    call = func.functional_call
    assert call(module, given, x).tolist() == [[4.0, 4.0]]
    assert call(module, given, (x,), {"scale": 2.0}).tolist() == [[8.0, 8.0]]
    own = module.first.weight.detach().clone()
    loose = call(module, given, x, tie_weights=False)
    np.testing.assert_allclose(loose.detach().numpy(), (x * 2 @ own.T).numpy(), rtol=1e-6)
    assert module.first.weight is module.second.weight
    both = {"first.weight": eye, "second.weight": eye}
    assert call(module, both, x, strict=True).tolist() == [[1.0, 1.0]]
    with pytest.raises(AttributeError, match="Tied has no submodule 'third'"):
        call(module, {"third.weight": eye}, x)
    with pytest.raises(StateError, match="there is no 'third'"):
        call(module, {**both, "third": eye}, x, strict=True)
    assert call(module, given, x, strict=True).tolist() == [[4.0, 4.0]]
    with pytest.raises(StateError, match=r"'second.weight' is missing"):
        call(module, given, x, strict=True, tie_weights=False)
    with pytest.raises(ValueError, match=r"got 'first.weight' more than once"):
        call(module, [given, given], x)
    with pytest.raises(ShapeError, match="stack_module_state: expected modules of one class"):
        func.stack_module_state([module, wf.nn.Linear(2, 2)])


@given(st.integers(1, 7), st.integers(1, 4), seeds)
@few
def test_chunks_of_examples(count, chunk, seed):
    x, y = draw((3, count), seed=seed), draw((2,), seed=seed)

    def f(x, y, k):
        return (x.sum() * y) ** k, x

    ours = wf.vmap(f, in_dims=(1, None, None), out_dims=(0, 1), chunk_size=chunk)
    theirs = torch.vmap(f, in_dims=(1, None, None), out_dims=(0, 1), chunk_size=chunk)
    same(ours(wf.tensor(x), wf.tensor(y), 2), theirs(torch.tensor(x), torch.tensor(y), 2))


def test_constants_under_no_grad():
    def shifted(x):
        with wf.no_grad():
            shift = func.grad(lambda x: x**4)(x)
        return x**3 - shift

    x = wf.tensor(2.0, requires_grad=True)
    assert func.grad(shifted)(x.detach()).item() == 12.0
    with wf.no_grad():
        assert not func.grad(lambda x: x**3)(x).requires_grad
    assert func.grad(lambda x: x**3)(x).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: func.grad(wf.mul, (0, -2))(x, x), GradientError, "expected different argnums"),
        (lambda x: func.grad(wf.mul, ())(x, x), GradientError, "argnums: expected an integer"),
        (lambda x: func.jacfwd(wf.mul, 0.0)(x, x), GradientError, "argnums: expected an integer"),
        (lambda x: func.vjp(lambda x: None, x), GradientError, "to return tensors, got nothing"),
        (lambda x: func.jacrev(lambda x: "a")(x), GradientError, "to return tensors, got str"),
        (lambda x: func.vjp(lambda x: [x, x], x, has_aux=True), GradientError, "got list"),
        (lambda x: func.jvp(wf.sin, x, x), TreeError, "jvp: expected tuples of primals"),
        (lambda x: func.jvp(wf.sin, (x,), [x]), TreeError, "jvp: expected tuples of primals"),
        (lambda x: func.jvp(lambda y: x, (x,), (x,), strict=True), GradientError, "strict"),
        (lambda x: wf.vmap(wf.sin, chunk_size=0)(x), ShapeError, "chunk_size: expected 1 or more"),
        (lambda x: wf.vmap(wf.mul)(x, 2), ShapeError, "expected an axis of None for the number 2"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text) as found:
        call(wf.ones(2))
    assert isinstance(found.value, RuntimeError)


def test_a_linear_function_of_tangents():
    y, along = func.linearize(lambda x: wf.sin(x) * x, wf.tensor([1.0, 2.0]))
    z, theirs = torch.func.linearize(lambda x: torch.sin(x) * x, torch.tensor([1.0, 2.0]))
    same(y, z)
    same(along(wf.tensor([1.0, -1.0])), theirs(torch.tensor([1.0, -1.0])))
    g, value = func.grad_and_value(lambda x: (x * x).sum())(wf.ones(2))
    assert g.tolist() == [2.0, 2.0] and value.item() == 2.0


def test_a_new_tensor_filled_under_vmap():
    def f(y):
        x = y.new_empty(2)
        x.copy_(y)
        return x.sum()

    assert wf.vmap(func.grad(f))(wf.ones(3, 2)).tolist() == [[1.0, 1.0]] * 3


@given(st.integers(0, 2), st.integers(0, 2), seeds)
@few
def test_examples_changed_in_place(axis, place, seed):
    x = draw((2, 3, 4), seed=seed)
    y = draw((x.shape[axis],), seed=seed + 1)
    ours, theirs = wf.tensor(x), torch.tensor(x)

    def change(x, y):
        return x.mul_(y), x[0].sin_()

    found = func.vmap(change, (axis, 0), place and (place - 1))(ours, wf.tensor(y))
    wanted = torch.func.vmap(change, (axis, 0), place and (place - 1))(theirs, torch.tensor(y))
    same([*found, ours], [*wanted, theirs])


def test_modules_of_which_some_are_fixed_do_not_stack():
    models = [wf.nn.Linear(2, 2) for _ in range(2)]
    models[0].weight.requires_grad_(False)
    with pytest.raises(GradientError, match=r"same \.requires_grad"):
        func.stack_module_state(models)


@given(sizes, seeds)
@few
def test_dual_tensors(n, seed):
    x, t, w = (draw((n,), seed=seed + i) for i in range(3))

    def run(module, x, t, w):
        forward = module.autograd.forward_ad
        with forward.dual_level():
            dual = forward.make_dual(x, t)
            y = (dual.sin() * w).cumsum(0).clone()
            y.mul_(dual)
            return [*forward.unpack_dual(y), forward.unpack_dual(w * 2).tangent is None]

    ours = [wf.tensor(a) for a in (x, t, w)]
    same(run(wf, *ours), run(torch, *[torch.tensor(a) for a in (x, t, w)]))


PICKS = [
    lambda x, i: x[i],
    lambda x, i: x[..., i],
    lambda x, i: x[i % 2, 1:],
    lambda x, i: x[x[0, 0].abs().long() % 2],
]


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (None, 0), (2, None)])
@given(seeds)
@few
def test_a_place_of_each_example(pick, dims, seed):
    x = draw((3, 3, 3), seed=seed)
    i = np.array([2, 0, 1]) if dims[1] == 0 else np.array(1)

    def run(library, x, i):
        return library.vmap(pick, dims)(x, i), library.func.grad(
            lambda x: (library.vmap(pick, dims)(x, i) ** 2).sum()
        )(x)

    same(run(wf, wf.tensor(x), wf.tensor(i)), run(torch, torch.tensor(x), torch.tensor(i)))


def test_numbers_by_name():
    x = wf.arange(3.0)
    assert wf.vmap(lambda x, scale=1, how="": x * scale)(x, scale=2, how="a").tolist() == [0, 2, 4]


def test_a_neighbor_moves_with_the_number():
    x, y = np.array([[1.0], [2.0]]), np.array([2.0, 2.0, 0.0])

    def run(library):
        f = library.func.jacrev(library.nextafter, (0, 1))
        return f(library.tensor(x), library.tensor(y))

    same(run(wf), run(torch))
