"""Tensors on several CPUs: where they are, what may be mixed, and the same bits everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.errors import ConfigError, WeftError

CPU, OTHER = wf.device("cpu"), wf.device("cpu:1")
NUMBERS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def two_devices():
    wf.set_cpu_devices(2)
    assert wf.get_cpu_devices() == 2
    yield
    wf.set_cpu_devices(1)
    wf.set_default_device(None)


@pytest.fixture(params=[False, True], ids=["interpreted", "compiled"])
def tier(request):
    with config.override(compile=request.param):
        yield


def tensor(device="cpu:1"):
    return wf.tensor(NUMBERS, device=device)


def test_where_tensors_are():
    x = tensor()
    assert x.device == OTHER and wf.ones(1).device == CPU == wf.ones(1, device="cpu:0").device
    assert repr(wf.zeros(2, device="cpu:1")) == "tensor([0., 0.], device='cpu:1')"
    assert repr(wf.zeros(2)) == "tensor([0., 0.])"
    assert x.to("cpu:1") is x and x.cpu().device == CPU and x.cpu().to(x).device == OTHER
    assert x.to("cpu", wf.float64).dtype is wf.float64
    assert np.array_equal(x.numpy(), NUMBERS) and np.array_equal(x.cpu().numpy(), NUMBERS)


def test_results_are_where_their_operands_are(tier):
    x = tensor()
    found = [
        x + 1, 2 * x, x @ x.T, x.sum(), x.reshape(-1), x[0], x[1:, 2], x[x > 0], x.nonzero(),
        x[wf.tensor([1, 2])], x.long(), x.clone(), x.detach(), x.max(0)[1], x.expand(2, 6, 4),
        wf.cat([x, x]), wf.where(x > 0, x, 0), x + wf.tensor(1.0), x.unique(), x.bool(),
        wf.zeros_like(x), wf.rand_like(x), wf.full_like(x, 2), x.new_ones(3), x.new_tensor([1.0]),
        x.mean().item() * x,
    ]  # fmt: skip
    assert [y.device for y in found] == [OTHER] * len(found)
    for y, z in zip(found, _on_first(), strict=False):
        assert np.array_equal(y.numpy(), z.numpy())


def _on_first():
    x = tensor("cpu")
    return [x + 1, 2 * x, x @ x.T, x.sum(), x.reshape(-1), x[0], x[1:, 2], x[x > 0], x.nonzero()]


MAKERS = [
    lambda **o: wf.zeros(2, **o), lambda **o: wf.ones(2, **o), lambda **o: wf.empty(2, **o),
    lambda **o: wf.full((2,), 3, **o), lambda **o: wf.tensor([1.0], **o),
    lambda **o: wf.eye(2, **o), lambda **o: wf.tril_indices(2, 2, **o),
    lambda **o: wf.as_tensor(NUMBERS, **o), lambda **o: wf.asarray([1, 2], **o),
    lambda **o: wf.arange(3, **o), lambda **o: wf.linspace(0, 1, 3, **o),
    lambda **o: wf.rand(2, **o), lambda **o: wf.randn(2, **o), lambda **o: wf.randperm(3, **o),
    lambda **o: wf.randint(3, (2,), **o), lambda **o: wf.hann_window(4, **o),
    lambda **o: wf.scalar_tensor(2.0, **o), lambda **o: wf.normal(0.0, 1.0, (2,), **o),
    lambda **o: nn.Linear(2, 3, **o).weight,
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_new_tensors(make):
    assert make().device == make(device="cpu").device == CPU
    assert make(device="cpu:1").device == make(device=OTHER).device == OTHER
    with wf.device("cpu:1"):
        assert make().device == OTHER and make(device="cpu").device == CPU
        with wf.device("cpu"):
            assert make().device == CPU
        assert make().device == OTHER
    wf.set_default_device("cpu:1")
    assert make().device == wf.get_default_device() == OTHER
    wf.set_default_device(None)
    assert make().device == wf.get_default_device() == CPU
    with pytest.raises(ConfigError, match=r"expected one of cpu:0, cpu:1, got cpu:2"):
        make(device="cpu:2")


def test_devices_are_not_mixed():
    x, y = tensor(), tensor("cpu")
    for mix in (lambda: x + y, lambda: y @ x.T, lambda: wf.cat([x, y]), lambda: y.add_(x)):
        with pytest.raises(RuntimeError, match=r"got tensors on cpu and cpu:1; move some by x.to"):
            mix()
    with pytest.raises(RuntimeError, match=r"matmul: expected all tensors on the same device"):
        x @ y.T
    assert np.array_equal((x.cpu() + y).numpy(), NUMBERS + NUMBERS)
    y.copy_(x * 2)
    assert y.device == CPU and np.array_equal(y.numpy(), NUMBERS * 2)


def test_gradients_cross_devices(tier):
    for _ in range(4):
        x = wf.tensor(NUMBERS, requires_grad=True)
        w = wf.tensor(NUMBERS.T.copy(), device="cpu:1", requires_grad=True)
        y = (wf.tanh(x).to("cpu:1") @ w).cpu()
        (y * y).sum().backward()
        assert (y.device, x.grad.device, w.grad.device) == (CPU, CPU, OTHER)
        got = x.grad.numpy(), w.grad.numpy()
    x, w = (wf.tensor(a, requires_grad=True) for a in (NUMBERS, NUMBERS.T.copy()))
    for _ in range(4):
        x.grad = w.grad = None
        (wf.tanh(x) @ w).square().sum().backward()
    np.testing.assert_allclose(got[0], x.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[1], w.grad.numpy(), rtol=1e-5, atol=1e-6)


def trained(first, second):
    """Losses and weights of a model whose layers are on these devices."""
    wf.manual_seed(0)
    a, b = nn.Linear(4, 8).to(first), nn.Linear(8, 2).to(second)
    optimizer = wf.optim.Adam([*a.parameters(), *b.parameters()], lr=0.01)
    x = tensor(first)
    losses = []
    for _ in range(6):
        loss = b(wf.relu(a(x)).to(second)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for module, device in ((a, first), (b, second)):
        assert {str(p.device) for p in module.parameters()} == {device}
        assert {str(p.grad.device) for p in module.parameters()} == {device}
    return [losses, *[p.tolist() for p in (*a.parameters(), *b.parameters())]]


def test_the_same_bits_on_any_devices():
    with config.override(compile=True):
        expected = trained("cpu", "cpu")
        assert trained("cpu:1", "cpu:1") == expected
        assert trained("cpu", "cpu:1") == expected
        assert trained("cpu:1", "cpu") == expected


def test_modules_move_with_their_state():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    saved = model.state_dict()
    assert model.to("cpu:1", wf.float64) is model
    for x in (*model.parameters(), *model.buffers()):
        assert x.device == OTHER
    model.to(wf.float32)
    model.load_state_dict(saved)
    assert model[0].weight.device == OTHER
    model(tensor()).sum().backward()
    optimizer.step()
    assert optimizer.state[model[0].weight]["momentum_buffer"].device == OTHER
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.state[model[0].weight]["momentum_buffer"].device == OTHER
    model.cpu()
    assert model(tensor("cpu")).device == CPU


def test_initialization_keeps_the_device():
    layer = nn.Linear(4, 3, device="cpu:1")
    nn.init.constant_(layer.weight, 2.0)
    nn.init.normal_(layer.bias)
    assert layer.weight.device == layer.bias.device == OTHER
    assert layer(tensor()).device == OTHER


def test_traced_functions_are_on_the_first():
    double = wf.func.jit(lambda x: x * 2)
    assert double(tensor("cpu")).device == CPU
    with pytest.raises(WeftError, match=r"first CPU in a function that is traced .* on cpu:1"):
        double(tensor())
    with pytest.raises(WeftError, match=r"cannot be moved within a function that is traced"):
        wf.func.jit(lambda x: x.to("cpu:1"))(tensor("cpu"))


def test_one_device_has_any_number():
    wf.set_cpu_devices(1)
    x = wf.ones(2, device="cpu:3")
    assert x.device == CPU and x.to("cpu:1") is x
    with wf.device("cpu:2"):
        assert wf.ones(1).device == CPU
    with pytest.raises(ConfigError, match="WEFT_CPU_DEVICES: expected an integer from 1 to 64"):
        wf.set_cpu_devices(0)


def test_what_is_on_the_first_only():
    with pytest.raises(ConfigError, match="expected the first CPU here, got cpu:1"):
        wf.numpy.zeros(2, device="cpu:1")


LAYERS = [
    lambda: nn.Conv2d(1, 2, 3, device="cpu:1")(tensor().reshape(1, 1, 6, 4)),
    lambda: nn.Embedding(5, 3, padding_idx=0, device="cpu:1")(wf.arange(4, device="cpu:1")),
    lambda: nn.LSTM(4, 3, device="cpu:1")(tensor())[0],
    lambda: nn.MultiheadAttention(4, 2, device="cpu:1")(*[tensor()] * 3)[0],
    lambda: nn.TransformerEncoderLayer(4, 2, 8, device="cpu:1")(tensor()),
    lambda: nn.BatchNorm1d(4, device="cpu:1")(tensor()),
    lambda: nn.Dropout(0.5)(tensor()),
    lambda: nn.CrossEntropyLoss()(tensor(), wf.zeros(6, dtype=wf.int64, device="cpu:1")),
    lambda: nn.CTCLoss()(
        tensor().log_softmax(-1)[:, None], wf.ones(1, 2, dtype=wf.int64, device="cpu:1"), [6], [2]
    ),
    lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3, device="cpu:1"))(tensor()),
    lambda: wf.empty(3, device="cpu:1").uniform_(),
    lambda: wf.linalg.svd(tensor())[1],
]


@pytest.mark.parametrize("make", LAYERS)
def test_layers(make):
    found = make()
    assert found.device == OTHER
    if found.requires_grad:
        found.sum().backward()
    assert np.isfinite(found.detach().numpy()).all()


def test_clipping_of_several_devices():
    def clipped(second):
        xs = [wf.ones(3, device=d, requires_grad=True) for d in ("cpu", second)]
        for i, x in enumerate(xs):
            (x * (3 + i)).sum().backward()
        total = nn.utils.clip_grad_norm_(xs, 1.0)
        nn.utils.clip_grad_value_(xs, 0.4)
        assert [str(x.grad.device) for x in xs] == ["cpu", second]
        return [total.item(), nn.utils.get_total_norm([x.grad for x in xs]).item(),
                *[x.grad.tolist() for x in xs]]  # fmt: skip

    assert clipped("cpu:1") == clipped("cpu")
