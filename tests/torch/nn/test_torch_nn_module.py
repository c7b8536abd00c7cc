"""Modules beside PyTorch's: signatures, printed forms, saved states, whole models."""

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

import weft as wf  # noqa: E402
from weft import nn  # noqa: E402

# Ours say more (arguments by name), or less (what nothing depends on).
ELSEWHERE = {
    "GRU", "LSTM", "RNN", "RNNCellBase", "LogSigmoid", "Module", "Sigmoid", "Softmax2d",
    "Softsign", "Tanh", "Tanhshrink", "Hardtanh", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "batch_norm", "fractional_max_pool2d", "fractional_max_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d", "normalize",
    "Transformer", "TransformerDecoderLayer", "TransformerEncoderLayer", "forward", "state_dict",
    "to_empty", "Parameter", "Buffer",
}  # fmt: skip


def arguments(function):
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    return [(p.name, p.default) for p in found]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (nn, torch.nn),
        (nn.functional, torch.nn.functional),
        (nn.init, torch.nn.init),
        (nn.utils, torch.nn.utils),
        (nn.Module, torch.nn.Module),
    ],
    ids=["nn", "functional", "init", "utils", "Module"],
)
def test_names_arguments_and_defaults(ours, theirs):
    checked = 0
    for name in dir(ours):
        one, two = getattr(ours, name), getattr(theirs, name, None)
        if name.startswith("_") or name in ELSEWHERE or not callable(one) or two is None:
            continue
        expected = arguments(two)
        if expected is not None:
            assert arguments(one) == expected, name
            checked += 1
    assert checked >= 8


FORMS = [
    lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.ReLU(True)),
    lambda nn: nn.ConvTranspose2d(2, 4, 3, 2, output_padding=1, groups=2),
    lambda nn: nn.Conv1d(2, 2, 3, padding="same", padding_mode="reflect", dilation=2),
    lambda nn: nn.Sequential(nn.BatchNorm2d(3), nn.LayerNorm(3, bias=False), nn.GroupNorm(1, 3)),
    lambda nn: nn.Sequential(nn.InstanceNorm1d(3), nn.RMSNorm(3), nn.LocalResponseNorm(2)),
    lambda nn: nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(3, 1), nn.AdaptiveAvgPool2d((1, 2))),
    lambda nn: nn.Sequential(nn.AvgPool1d(2), nn.LPPool2d(2, 3), nn.MaxUnpool2d(2)),
    lambda nn: nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()]),
    lambda nn: nn.ModuleDict({"a": nn.Dropout(0.1), "b": nn.Embedding(3, 2, 1)}),
    lambda nn: nn.Sequential(nn.EmbeddingBag(3, 2), nn.Flatten(), nn.Unflatten(1, (2, 3))),
    lambda nn: nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.5, batch_first=True),
    lambda nn: nn.Sequential(nn.GRUCell(2, 3), nn.RNNCell(2, 3, False), nn.LSTMCell(2, 3)),
    lambda nn: nn.Sequential(nn.Upsample(scale_factor=2), nn.PixelShuffle(2), nn.Unfold(3)),
    lambda nn: nn.Sequential(nn.ZeroPad2d(1), nn.ConstantPad1d(2, 3.0), nn.ReflectionPad2d(1)),
    lambda nn: nn.Sequential(nn.CrossEntropyLoss(), nn.MSELoss(), nn.Identity()),
    lambda nn: nn.Bilinear(2, 3, 4),
]


@pytest.mark.parametrize("make", FORMS)
def test_printed_forms(make):
    assert repr(make(nn)) == repr(make(torch.nn))


def net(nn, relu, flat):
    """One source, whichever library `nn` is of."""

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(channels)

        def forward(self, x):
            return relu(self.norm(self.conv(x)) + x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 8, 3, 2, 1)
            self.blocks = nn.ModuleList([Block(8) for _ in range(2)])
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.head = nn.Linear(8, 5)

        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return self.head(flat(self.pool(x), 1))

    return Net()


def test_a_saved_state_loads_both_ways(tmp_path):
    theirs = net(torch.nn, torch.relu, torch.flatten)
    ours = net(nn, wf.relu, wf.flatten)
    path = tmp_path / "model.safetensors"
    arrays = {k: v.numpy() for k, v in theirs.state_dict().items()}
    safetensors_numpy.save_file(arrays, path)
    ours.load_state_dict(wf.load(path))
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(wf.tensor(x)).detach().numpy(), expected, atol=1e-5)
    wf.save(ours.state_dict(), path)
    back = {k: torch.from_numpy(v) for k, v in safetensors_numpy.load_file(path).items()}
    theirs.load_state_dict(back)
    expected = ours.eval()(wf.tensor(x)).detach().numpy()
    found = theirs.eval()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_training_takes_the_same_way():
    theirs, ours = net(torch.nn, torch.relu, torch.flatten), net(nn, wf.relu, wf.flatten)
    ours.load_state_dict({k: v.numpy().copy() for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    sgd = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(4):
        x, y = rng.standard_normal((4, 3, 8, 8)).astype(np.float32), rng.integers(0, 5, 4)
        one = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
        two = nn.functional.cross_entropy(ours(wf.tensor(x)), wf.tensor(y))
        assert two.item() == pytest.approx(one.item(), abs=1e-4)
        sgd.zero_grad()
        one.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        sgd.step()
        ours.zero_grad()
        two.backward()
        nn.utils.clip_grad_norm_(ours.parameters(), 0.5)
        with wf.no_grad():
            for p in ours.parameters():
                p.sub_(p.grad * 0.1)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(
            ours.state_dict()[name].numpy(), value.numpy(), atol=2e-4, err_msg=name
        )


LAZY = [
    ("LazyLinear", (3,), (2, 4)),
    *[(f"LazyConv{n}d", (4, 2), (2, 3, *[5] * n)) for n in (1, 2, 3)],
    *[(f"LazyConvTranspose{n}d", (4, 2), (3, *[4] * n)) for n in (1, 2, 3)],
    *[(f"LazyBatchNorm{n}d", (), (2, 3, *[4] * n)) for n in (1, 2, 3)],
    *[(f"LazyInstanceNorm{n}d", (), (2, 3, *[4] * n)) for n in (1, 2, 3)],
    ("LazyInstanceNorm2d", (1e-5, 0.1, True, True), (2, 3, 4, 4)),
    ("LazyBatchNorm2d", (1e-5, 0.1, False), (2, 3, 4, 4)),
]


@pytest.mark.parametrize(("name", "args", "shape"), LAZY)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_lazy_layer(name, args, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    theirs = getattr(torch.nn, name)(*args)
    expected = theirs(torch.tensor(x))
    ours = getattr(nn, name)(*args)
    assert ours.has_uninitialized_params()
    before = dict(ours.named_parameters())
    assert all(isinstance(p, nn.UninitializedParameter) for n, p in before.items() if n == "weight")
    ours(wf.tensor(x))
    assert type(ours) is getattr(nn, name.removeprefix("Lazy"))
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    assert all(ours.get_parameter(n) is p and p.requires_grad for n, p in before.items())
    fresh = getattr(nn, name)(*args)
    fresh.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    assert not fresh.has_uninitialized_params() or not theirs.state_dict()
    fresh.train(False)
    theirs.train(False)
    found, expected = fresh(wf.tensor(x)), theirs(torch.tensor(x))
    assert type(fresh) is type(ours)
    np.testing.assert_allclose(found.numpy(force=True), expected.detach().numpy(), 1e-4, 1e-5)
