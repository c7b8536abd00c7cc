"""Corner cases of layers and losses from PyTorch's own tests, beside PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
prune = pytest.importorskip("torch.nn.utils.prune")

import weft as wf  # noqa: E402
from weft.nn.utils import prune as own_prune  # noqa: E402

BOTH = (wf, torch)


def alike(run, atol=1e-6):
    """The values of `run(wf)` are those of `run(torch)`."""
    mine, theirs = ([np.asarray(x.detach()) for x in run(m)] for m in BOTH)
    for x, y in zip(mine, theirs, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, atol=atol)


def refused(run, kind=RuntimeError):
    """Both raise."""
    for m in BOTH:
        with pytest.raises(kind):
            run(m)


def numbers(m, *shape, seed=0, dtype="float32"):
    return m.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


@pytest.mark.parametrize("given", ["both", "k", "v"])
def test_keys_and_values_of_attention_that_are_not_projected(given):
    def run(m):
        x = numbers(m, 3, 2, 6)
        static = {"static_k": numbers(m, 4, 5, 3, seed=1), "static_v": numbers(m, 4, 5, 3, seed=2)}
        if given != "both":
            static = {f"static_{given}": numbers(m, 4, 3, 3, seed=1)}
        y, weights = m.nn.functional.multi_head_attention_forward(
            x, x, x, 6, 2, numbers(m, 18, 6), None, None, None, False, 0.0, numbers(m, 6, 6), None,
            **static,
        )  # fmt: skip
        return y, weights

    alike(run)


def test_keys_of_attention_that_do_not_fit():
    def forward(m, shape, bias=None):
        x = m.ones(3, 2, 6)
        m.nn.functional.multi_head_attention_forward(
            x, x, x, 6, 2, m.ones(18, 6), None, bias, bias, False, 0.0, m.ones(6, 6), None,
            static_k=m.ones(*shape), static_v=m.ones(*shape),
        )  # fmt: skip

    for shape in ((4, 5, 2), (3, 5, 3)):
        refused(lambda m, s=shape: forward(m, s), (AssertionError, ValueError))
    refused(lambda m: forward(m, (4, 5, 3), m.ones(1, 1, 6)), (AssertionError, ValueError))


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_states_of_cells_do_not_broadcast(name):
    def run(m, *shape):
        state = m.ones(*shape)
        cell = getattr(m.nn, name)(2, 3)
        cell(m.ones(4, 2), (state, state) if name == "LSTMCell" else state)

    for shape in ((1, 3), (4, 1), (3,)):
        refused(lambda m, s=shape: run(m, *s))


def test_weights_of_recurrent_layers_may_be_computed_from_others():
    def run(m):
        layer = m.nn.LSTM(3, 2)
        for i, weight in enumerate(layer.parameters()):
            weight.data = numbers(m, *weight.shape, seed=i)
        pruning = own_prune if m is wf else prune
        pruning.l1_unstructured(layer, "weight_ih_l0", 0.5)
        pruned = sum(not isinstance(w, m.nn.Parameter) for w in layer._flat_weights)
        y, (h, _) = layer(numbers(m, 4, 1, 3))
        pruning.remove(layer, "weight_ih_l0")
        assert pruned == 1 and len(layer._flat_weights) == 4
        return y, h, layer.weight_ih_l0

    alike(run)


def test_lists_of_tensors_of_one_element():
    for given in ([[1.0]], [[1.0], [2.0]], [[[1.0]]], [1.0, [2.0]]):
        alike(lambda m, g=given: [m.tensor([m.tensor(x) for x in g])])


@pytest.mark.parametrize(
    "given",
    [("cpu", True), ("int64",), (None, True), ("cpu", "int64", True), ([],), ("cpu", "tensor")],
)
def test_what_modules_are_not_converted_to(given):
    for m in BOTH:
        values = {"int64": m.int64, "cpu": m.device("cpu"), "tensor": m.tensor(3)}
        args = [values.get(x, x) if isinstance(x, str) else x for x in given]
        with pytest.raises(TypeError):
            m.nn.Linear(1, 1).to(*args)
    refused(lambda m: m.nn.Linear(1, 1).to("cpu", copy=True))


@pytest.mark.filterwarnings("ignore")
def test_modules_become_complex_and_real_again():
    for m in BOTH:
        layer = m.nn.Linear(1, 1)
        for name in ("complex64", "complex128", "float64", "float32"):
            assert layer.to(getattr(m, name), True).weight.dtype == getattr(m, name)
        layer.to(m.complex64).double()  # of floating numbers alone
        assert layer.weight.dtype == m.complex64


def test_functions_of_all_tensors_of_a_module():
    def run(m):
        layer = m.nn.BatchNorm1d(2)
        weight, mean = layer.weight, layer.running_mean
        weight.grad = m.ones(2)
        layer._apply(lambda t: t + 1)
        assert layer.weight is weight and weight.requires_grad
        layer._apply(lambda t: t.mul_(3))
        assert mean.shape == (2,)
        return weight, weight.grad, layer.bias, layer.running_mean, layer.num_batches_tracked

    alike(run)


def test_lists_and_dicts_of_parameters():
    def run(m):
        found = m.nn.ParameterDict({"b": m.ones(1), "a": m.zeros(2)})
        found |= {"d": m.ones(4), "c": m.ones(3)}
        ordered = m.nn.ParameterDict([("z", m.ones(1)), ("y", m.zeros(2))])
        return [m.tensor(p.shape[0]) for p in (*found.parameters(), *ordered.parameters())]

    alike(run)
    for m in BOTH:
        found = m.nn.ParameterList()
        with pytest.raises(TypeError):
            found += m.nn.Parameter(m.ones(2, 2))
        with pytest.raises(TypeError):
            found.extend(m.ones(2))


def test_losses_of_shapes_that_broadcast_warn():
    for m in BOTH:
        f = m.nn.functional
        for loss in (f.mse_loss, f.l1_loss, f.smooth_l1_loss, f.huber_loss):
            with pytest.warns(UserWarning):
                loss(m.ones(3, 1), m.ones(3))


@pytest.mark.parametrize("var", [(2, 3), (2,), (2, 1), (1, 3)])
def test_variances_of_shapes_that_fit(var):
    alike(lambda m: [m.nn.functional.gaussian_nll_loss(m.ones(2, 3), m.zeros(2, 3), m.ones(*var))])


def test_variances_of_shapes_that_do_not_fit():
    for m in BOTH:
        for shape in ((3,), (1, 1), (1, 2, 3), (2, 4)):
            with pytest.raises(ValueError):
                m.nn.functional.gaussian_nll_loss(m.ones(2, 3), m.zeros(2, 3), m.ones(*shape))


REFUSED = {
    "smooth_l1": lambda m, f: f.smooth_l1_loss(m.ones(2), m.ones(2), beta=-1.0),
    "huber": lambda m, f: f.huber_loss(m.ones(2), m.ones(2), delta=0.0),
    "smoothing": lambda m, f: f.cross_entropy(m.ones(2, 2), m.ones(2, 2), label_smoothing=1.2),
    "activation": lambda m, f: m.nn.TransformerEncoderLayer(4, 2, activation="abc"),
    "bicubic": lambda m, f: f.grid_sample(
        m.ones(1, 1, 2, 2, 2), m.ones(1, 1, 1, 1, 3), "bicubic", align_corners=False
    ),
    "cosine target": lambda m, f: f.cosine_embedding_loss(m.ones(5, 2), m.ones(5, 2), m.ones(5, 1)),
    "cosine input": lambda m, f: f.cosine_embedding_loss(m.ones(2), m.ones(5, 2), m.ones(5)),
    "margin": lambda m, f: f.multi_margin_loss(m.ones(0), m.ones(10, dtype=m.int64)),
    "no classes": lambda m, f: f.multilabel_margin_loss(
        m.ones(10, 0), m.ones(10, 0, dtype=m.int64)
    ),
    "softshrink": lambda m, f: f.softshrink(m.ones(2), -1.0),
    "reflect": lambda m, f: f.pad(m.ones(3, 0, 10), (2, 2), mode="reflect"),
    "replicate": lambda m, f: f.pad(m.ones(3, 0, 10), (2, 2), mode="replicate"),
    "unfold": lambda m, f: f.unfold(m.ones(3, 0, 3, 4), (2, 3)),
    "one_hot": lambda m, f: f.one_hot(m.ones(4, 0, dtype=m.int64)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_both_refuse(name):
    refused(lambda m: REFUSED[name](m, m.nn.functional))


def test_groups_of_one_value_raise():
    refused(lambda m: m.nn.functional.group_norm(m.ones(1, 10, 1), 10), ValueError)


def test_losses_and_similarities_of_numbers():
    def run(m):
        f, x, y = m.nn.functional, m.tensor(2.0), m.tensor(-3.0)
        label = m.tensor(0)
        loss = f.multilabel_margin_loss(x, label, reduction="none")
        return f.cosine_similarity(x, y, dim=0), f.normalize(x, dim=0), f.normalize(y, 1, -1), loss

    alike(run)


def test_functions_that_write_to_a_tensor():
    for name in ("logsigmoid", "softplus", "softshrink"):
        alike(lambda m, n=name: [getattr(m.nn.functional, n)(m.ones(2, 3), out=m.empty(0))])


def test_batched_gradients_of_dropout_have_its_mask():
    x = wf.ones(3, 4, requires_grad=True)
    y = wf.nn.functional.dropout(x, 0.5)
    g = wf.stack([wf.ones(3, 4), 2 * wf.ones(3, 4)])

    def pulled(row):
        return wf.autograd.grad(y, x, row, retain_graph=True)[0]

    expected = [pulled(row).tolist() for row in g]
    batched = wf.autograd.grad(y, x, g, is_grads_batched=True, retain_graph=True)[0]
    assert batched.tolist() == expected
    for randomness in ("error", "same", "different"):
        assert wf.func.vmap(pulled, randomness=randomness)(g).tolist() == expected


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_channels_of_instance_norm(rank, batch):
    for m in BOTH:
        kind, x = getattr(m.nn, f"InstanceNorm{rank}d"), m.ones(*batch, *[2] * (rank + 1))
        with pytest.warns(UserWarning, match="affine"):
            kind(4)(x)
        with pytest.raises((ValueError, RuntimeError)):
            kind(4, affine=True)(x)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("free", [True, False])
def test_orthogonal_weights(dtype, kind, shape, free):
    complex_parts = 1j if dtype == "complex64" else 0

    def run(m):
        def matrix(seed):
            drawn = np.random.default_rng(seed).normal(size=(2, *shape))
            return m.tensor((drawn[0] + complex_parts * drawn[1]).astype(dtype))

        layer = m.nn.Linear(*shape[::-1], bias=False)
        layer.weight = m.nn.Parameter(matrix(0))
        orthogonal = m.nn.utils.parametrizations.orthogonal
        orthogonal(layer, "weight", kind, use_trivialization=free)
        found = [layer.weight]
        if free or kind == "householder":
            layer.weight = matrix(1)
            found.append(layer.weight)
        (layer.weight * matrix(2)).sum().abs().backward()
        m.optim.SGD(layer.parameters(), lr=0.1).step()
        return [*found, layer.weight]

    if kind == "householder" and complex_parts:
        refused(run, ValueError)
    else:
        alike(run, atol=1e-5)


def test_hooks_that_take_keywords_are_distinguished():
    for m in BOTH:
        layer = m.nn.Linear(1, 1)
        with_kwargs = layer.register_forward_hook(lambda *_, **__: None, with_kwargs=True)
        before = layer.register_forward_pre_hook(lambda *_, **__: None, with_kwargs=True)
        layer.register_forward_hook(lambda *_: None)
        assert list(layer._forward_hooks_with_kwargs) == [with_kwargs.id]
        assert list(layer._forward_pre_hooks_with_kwargs) == [before.id]
        with_kwargs.remove()
        before.remove()
        assert not layer._forward_hooks_with_kwargs and not layer._forward_pre_hooks_with_kwargs


def test_backward_hooks_of_a_module_that_returns_a_dict():
    class Net(wf.nn.Module):
        def forward(self, x):
            return {"y": 2 * x, "n": 3}

    net, seen = Net(), []
    net.register_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output))
    x = wf.ones(2, requires_grad=True)
    found = net(x)
    found["y"].sum().backward()
    assert list(found) == ["y", "n"] and found["n"] == 3
    assert [g if g is None else g.tolist() for g in seen[0]] == [[1, 1], None]


def test_places_in_a_row_of_modules():
    for m in BOTH:
        row = m.nn.Sequential(m.nn.Identity(), m.nn.Identity())
        row.insert(-2, m.nn.ReLU())
        assert isinstance(row[0], m.nn.ReLU)
        for place in (-4, 4):
            with pytest.raises(IndexError):
                row.insert(place, m.nn.Identity())


def test_a_weight_is_split_once():
    def run(m):
        weight_norm = m.nn.utils.weight_norm
        weight_norm(weight_norm(m.nn.Linear(2, 2)))

    with pytest.warns(FutureWarning):
        refused(run)


def test_normal_complex_numbers_in_place():
    wf.manual_seed(0)
    x = wf.empty(20000, dtype=wf.complex64).normal_(1.0, 2.0).numpy()
    assert abs(x.mean() - 1) < 0.05
    assert abs(x.real.std() - 2**0.5) < 0.05 and abs(x.imag.std() - 2**0.5) < 0.05


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["hardsigmoid", "hardswish"])
def test_slopes_near_the_ends_of_what_is_bent(name, dtype):
    def run(m):
        kind = getattr(m, dtype)
        x = m.tensor([-4, -3, -2.984375, 0, 1, 2.984375, 4, 9, np.nan], dtype=kind)
        x.requires_grad_()
        y = getattr(m.nn.functional, name)(x)
        y.sum().backward()
        return y.float(), x.grad.float()[:-1]

    alike(run, atol=2e-2)


def test_prefixes_of_a_state_dict_go():
    for m in BOTH:
        net = m.nn.Sequential(m.nn.Sequential(m.nn.Linear(1, 1)))
        state = net.state_dict()
        utils = m.nn.utils if m is wf else torch.nn.modules.utils
        utils.consume_prefix_in_state_dict_if_present(state, "0.")
        assert sorted(state) == ["0.bias", "0.weight"]
        assert sorted(state._metadata) == ["", "0"]


def test_initial_values_by_old_names():
    def run(m):
        x = m.empty(2, 3)
        with pytest.warns(FutureWarning, match="deprecated"):
            assert m.nn.init.constant(x, val=2.0) is x
        return [x]

    alike(run)
    for name in ("kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform", "normal"):
        with pytest.warns(FutureWarning, match=f"use nn.init.{name}_"):
            assert getattr(wf.nn.init, name)(wf.zeros(3, 3)).abs().sum() > 0
