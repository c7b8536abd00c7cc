"""Models against the same ones in PyTorch: parameter counts, and outputs with the same weights.

PyTorch's side is written out here, so that the test runs anywhere.
"""

from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from weft import models  # noqa: E402

tn, F = torch.nn, torch.nn.functional


def alexnet():
    return models.AlexNet(), tn.Sequential(
        tn.Sequential(
            tn.Conv2d(3, 64, 11, 4, 2), tn.ReLU(), tn.MaxPool2d(3, 2),
            tn.Conv2d(64, 192, 5, 1, 2), tn.ReLU(), tn.MaxPool2d(3, 2),
            tn.Conv2d(192, 384, 3, 1, 1), tn.ReLU(), tn.Conv2d(384, 256, 3, 1, 1), tn.ReLU(),
            tn.Conv2d(256, 256, 3, 1, 1), tn.ReLU(), tn.MaxPool2d(3, 2), tn.Flatten(1),
        ),
        tn.Sequential(
            tn.Dropout(), tn.Linear(9216, 4096), tn.ReLU(),
            tn.Dropout(), tn.Linear(4096, 4096), tn.ReLU(), tn.Linear(4096, 1000),
        ),
    )  # fmt: skip


def vgg(ours, stages):
    layers, channels = [], 3
    for width, count in zip((64, 128, 256, 512, 512), stages, strict=True):
        for _ in range(count):
            layers += [tn.Conv2d(channels, width, 3, 1, 1), tn.ReLU()]
            channels = width
        layers.append(tn.MaxPool2d(2, 2))
    classifier = [
        tn.Flatten(1), tn.Linear(25088, 4096), tn.ReLU(), tn.Dropout(),
        tn.Linear(4096, 4096), tn.ReLU(), tn.Dropout(), tn.Linear(4096, 1000),
    ]  # fmt: skip
    return ours(), tn.Sequential(*layers, *classifier)


class Residual(tn.Module):
    def __init__(self, convolutions, shortcut):
        super().__init__()
        self.convolutions = tn.Sequential(*convolutions)
        self.shortcut = shortcut

    def forward(self, x):
        return F.relu(self.convolutions(x) + self.shortcut(x))


def resnet(ours, bottleneck, blocks):
    def unit(i, o, k, s=1):
        return [tn.Conv2d(i, o, k, s, k // 2, bias=False), tn.BatchNorm2d(o)]

    layers, i = [*unit(3, 64, 7, 2), tn.ReLU(), tn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate(blocks):
        p = 64 * 2**stage
        o = 4 * p if bottleneck else p
        for k in range(count):
            s = 2 if stage and k == 0 else 1
            if bottleneck:
                body = [*unit(i, p, 1), tn.ReLU(), *unit(p, p, 3, s), tn.ReLU(), *unit(p, o, 1)]
            else:
                body = [*unit(i, o, 3, s), tn.ReLU(), *unit(o, o, 3)]
            plain = s == 1 and i == o
            layers.append(
                Residual(body, tn.Identity() if plain else tn.Sequential(*unit(i, o, 1, s)))
            )
            i = o
    return ours(), tn.Sequential(
        *layers, tn.AdaptiveAvgPool2d(1), tn.Flatten(1), tn.Linear(i, 1000)
    )


def mobilenet():
    def unit(i, o, k, s, g=1):
        return [tn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), tn.BatchNorm2d(o), tn.ReLU()]

    layers, i = unit(3, 32, 3, 2), 32
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for o, s in [*plan, *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        layers += unit(i, i, 3, s, i) + unit(i, o, 1, 1)
        i = o
    head = [tn.AdaptiveAvgPool2d(1), tn.Flatten(1), tn.Linear(1024, 1000)]
    return models.MobileNetV1(), tn.Sequential(*layers, *head)


IMAGES = {
    "alexnet": (alexnet, 61_100_840),
    "vgg16": (lambda: vgg(models.vgg16, (2, 2, 3, 3, 3)), 138_357_544),
    "vgg19": (lambda: vgg(models.vgg19, (2, 2, 4, 4, 4)), 143_667_240),
    "resnet18": (lambda: resnet(models.resnet18, False, (2, 2, 2, 2)), 11_689_512),
    "resnet50": (lambda: resnet(models.resnet50, True, (3, 4, 6, 3)), 25_557_032),
    "mobilenet": (mobilenet, 4_231_976),
}


def count(model):
    return sum(p.numel() for p in model.parameters())


def hand_over(theirs, ours):
    """Load PyTorch's state, in order, which both have in common."""
    state = theirs.state_dict()
    assert len(state) == len(ours.state_dict())
    named = zip(ours.state_dict(), state.values(), strict=True)
    ours.load_state_dict({k: wf.from_numpy(v.numpy()) for k, v in named})
    return ours.eval(), theirs.eval()


def close(found, wanted):
    a, b = found.detach().numpy(), wanted.detach().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


@pytest.mark.parametrize("name", IMAGES)
def test_image_models(name):
    make, parameters = IMAGES[name]
    torch.manual_seed(0)
    ours, theirs = make()
    assert count(ours) == count(theirs) == parameters
    ours, theirs = hand_over(theirs, ours)
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    with torch.no_grad(), wf.no_grad():
        close(ours(wf.from_numpy(x)), theirs(torch.from_numpy(x)))
        close(ours(wf.from_numpy(x)), theirs(torch.from_numpy(x)))  # with what was kept
        for model in (ours, theirs):
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.dtype in (torch.float32, wf.float32):
                    tensor *= 1.25
        close(ours(wf.from_numpy(x)), theirs(torch.from_numpy(x)))


class TorchGNMT(tn.Module):
    def __init__(self, vocabulary, h):
        super().__init__()
        self.emb = tn.Embedding(vocabulary, h)
        self.e1 = tn.LSTM(h, h, bidirectional=True, batch_first=True)
        self.e2 = tn.LSTM(2 * h, h, batch_first=True)
        self.e3 = tn.ModuleList(tn.LSTM(h, h, batch_first=True) for _ in range(2))
        self.d1 = tn.LSTM(h, h, batch_first=True)
        self.d2 = tn.ModuleList(tn.LSTM(2 * h, h, batch_first=True) for _ in range(3))
        self.q, self.k = tn.Linear(h, h, bias=False), tn.Linear(h, h, bias=False)
        self.v = tn.Parameter(torch.randn(h))
        self.g, self.b = tn.Parameter(torch.ones(1)), tn.Parameter(torch.randn(h))
        self.out = tn.Linear(h, vocabulary)

    def forward(self, src, tgt):
        x = self.e2(self.e1(self.emb(src))[0])[0]
        for layer in self.e3:
            x = x + layer(x)[0]
        y = self.d1(self.emb(tgt))[0]
        sums = torch.tanh(self.q(y)[:, :, None] + self.k(x)[:, None] + self.b)
        c = torch.softmax(sums @ (self.g * self.v / self.v.norm()), -1) @ x
        y = self.d2[0](torch.cat([y, c], -1))[0]
        for layer in list(self.d2)[1:]:
            y = y + layer(torch.cat([y, c], -1))[0]
        return self.out(y)


def test_gnmt():
    assert count(models.GNMT()) == 160_015_617
    ours, theirs = models.GNMT(50, 16), TorchGNMT(50, 16)
    named = {k: wf.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(named)
    rng = np.random.default_rng(0)
    src, tgt = rng.integers(0, 50, (3, 7)), rng.integers(0, 50, (3, 5))
    ours.eval()
    close(ours(wf.tensor(src), wf.tensor(tgt)), theirs(torch.tensor(src), torch.tensor(tgt)))


class TorchNeuMF(tn.Module):
    def __init__(self, users, items, mf, mlp):
        super().__init__()
        self.mu, self.mi = tn.Embedding(users, mf), tn.Embedding(items, mf)
        self.lu, self.li = tn.Embedding(users, mlp[0] // 2), tn.Embedding(items, mlp[0] // 2)
        self.mlp = tn.Sequential(
            *[m for a, b in pairwise(mlp) for m in (tn.Linear(a, b), tn.ReLU())]
        )
        self.out = tn.Linear(mf + mlp[-1], 1)

    def forward(self, u, i):
        deep = self.mlp(torch.cat([self.lu(u), self.li(i)], -1))
        return self.out(torch.cat([self.mu(u) * self.mi(i), deep], -1))[:, 0]


def test_neumf():
    assert count(models.NeuMF()) == 31_832_577
    ours, theirs = models.NeuMF(30, 40, 8, (32, 16, 8)), TorchNeuMF(30, 40, 8, (32, 16, 8))
    ours.load_state_dict({k: wf.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    u, i = rng.integers(0, 30, 9), rng.integers(0, 40, 9)
    close(ours(wf.tensor(u), wf.tensor(i)), theirs(torch.tensor(u), torch.tensor(i)))
