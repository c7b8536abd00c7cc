"""Library kernels and compiled programs give the same bits, whatever the sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.eager.record.run import stitched_tier, tier_choice
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.record.run.stitched_tier import Compiling, Stitched
from weft.nn import functional as F


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 10)

    def forward(self, x: wf.Tensor) -> wf.Tensor:
        return self.out(self.inner(x)[0][:, -1])


def perceptron() -> nn.Module:
    layers = nn.Linear(8, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 10)
    return nn.Sequential(nn.Flatten(0, 1), *layers, nn.Unflatten(0, (-1, 7)), Last())


class Last(nn.Module):
    def forward(self, x: wf.Tensor) -> wf.Tensor:
        return x[:, -1]


def attention() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    return nn.Sequential(layer, Last(), nn.Linear(8, 10))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "perceptron": perceptron, "attention": attention, "recurrent": Recurrent,
}  # fmt: skip
BATCHES = (5, 5, 17, 5, 33, 2)


def trained(make: Callable[[], nn.Module], kind: type, threads: int = 1) -> list[np.ndarray]:
    """What training on batches of several sizes gives: losses, then parameters."""
    wf.manual_seed(0)
    with config.override(threads=threads):
        net = make()
        optimizer = kind(net.parameters(), lr=0.01)
        losses = []
        for i, n in enumerate(BATCHES):
            x = wf.randn(n, 7, 8, generator=wf.Generator().manual_seed(i))
            loss = F.cross_entropy(net(x), wf.arange(n) % 10)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(np.asarray(loss.item(), np.float32))
        return [*losses, *[p.detach().numpy().copy() for p in net.parameters()]]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("perceptron", wf.optim.AdamW), ("attention", wf.optim.SGD), ("recurrent", wf.optim.AdamW)],
)
def test_training_has_the_same_bits_in_both_tiers(name, kind, monkeypatch):
    monkeypatch.setattr(stitched_tier, "STITCHED_RUNS", 1 << 30)
    stitched = trained(NETWORKS[name], kind)
    assert [x.tobytes() for x in trained(NETWORKS[name], kind, 2)] == [
        x.tobytes() for x in stitched
    ]
    with config.override(compile=True):
        compiled = trained(NETWORKS[name], kind)
    for x, y in zip(stitched, compiled, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_value_in_ever_new_sizes_stays_on_library_kernels_until_one_is_hot():
    for n in range(2, 40):
        assert (wf.ones(n) * 2.0).tanh().sum().item() == pytest.approx(n * np.tanh(2.0), rel=1e-5)
    many, met = stitched_tier.STITCHED_RUNS_OF_MANY, list[type]()
    for _ in range(many + 3):
        (wf.ones(41) * 2.0).tanh().sum().item()
        met.append(type(next(reversed(tier_choice._tiers.values()))))
    assert met == [Stitched] * many + [Compiling] + [Compiled] * 2


def test_sizes_of_one_and_none_are_as_others():
    for n in (3, 1, 0, 2, 1, 5, 0):
        x = wf.arange(float(3 * n)).reshape(n, 3).requires_grad_()
        y = (x.softmax(1) * wf.arange(3.0)).sum()
        y.backward()
        assert x.grad.shape == (n, 3)
        wanted = np.exp(np.arange(3.0)) / np.exp(np.arange(3.0)).sum()
        assert y.item() == pytest.approx(n * (wanted * np.arange(3)).sum(), rel=1e-5)


def test_a_batch_of_one_between_larger_ones():
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    optimizer = wf.optim.Adam(net.parameters())
    for n in (1, 209, 1, 2, 300, 1):
        net(wf.ones(n, 4)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert all(np.isfinite(p.detach().numpy()).all() for p in net.parameters())
