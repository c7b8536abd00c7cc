"""Reading a loss before its backward pass: nothing that takes long is computed twice, and all bits
are those of a loop that does not read it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kernel_counts import counted

import weft as wf
from weft import nn
from weft.eager.record.run import kept_result
from weft.nn import functional as F


class _Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 10)

    def forward(self, x: wf.Tensor) -> wf.Tensor:
        q, k, v = self.qkv(x).view(6, 20, 2, 48).transpose(1, 2).split(16, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(6, 20, 32)
        return self.out(y.mean(1))


class _Recurs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(32, 24, batch_first=True), nn.GRU(24, 10, batch_first=True)

    def forward(self, x: wf.Tensor) -> wf.Tensor:
        return self.gru(self.lstm(x)[0])[0][:, -1]


class _InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(32, 48), nn.Linear(48, 10)

    def forward(self, x: wf.Tensor) -> wf.Tensor:
        y = self.first(x[:, 0])
        y.relu_()
        y.mul_(1.5)
        return self.last(F.dropout(y, 0.3))


def _model(kind: str) -> tuple[nn.Module, wf.Tensor]:
    wf.manual_seed(3)
    if kind == "convolution":
        layers = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.AvgPool2d(2)
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(6 * 9, 10)), wf.randn(6, 3, 8, 8)
    made = {"attention": _Attends, "recurrent": _Recurs, "in place": _InPlace}[kind]
    return made(), wf.randn(6, 20, 32)


KINDS = ["convolution", "attention", "recurrent", "in place"]


def _trained(kind: str, between: Callable[[wf.Tensor], object]) -> list[bytes]:
    model, x = _model(kind)
    y = wf.arange(6) % 10
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found: list[bytes] = []
    for _ in range(5):
        loss = F.cross_entropy(model(x), y)
        between(loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.detach().numpy().tobytes())
    return found + [p.detach().numpy().tobytes() for p in [*model.parameters(), *model.buffers()]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_that_is_read_changes_no_bits(kind: str) -> None:
    plain = _trained(kind, lambda loss: None)
    followed = len(kept_result._followed)
    assert _trained(kind, lambda loss: loss.item()) == plain
    assert len(kept_result._followed) > followed
    assert _trained(kind, bool) == plain


def test_nothing_that_takes_long_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counted(monkeypatch)
    model = nn.Sequential(nn.Linear(32, 40), nn.Tanh(), nn.Linear(40, 40), nn.Linear(40, 7))
    x, seen = wf.randn(128, 32), list[dict[str, int]]()
    for reads in (False, True):
        for _ in range(3):
            wf.synchronize()
            counts.clear()
            loss = model(x).square().mean()
            if reads:
                loss.item()
            loss.backward()
            for p in model.parameters():
                assert p.grad is not None
                p.grad.sum().item()
                p.grad = None
        seen.append(dict(counts))
    assert seen[0]["matmul"] == seen[1]["matmul"] > 0


def test_graphs_that_are_kept_and_passes_without_gradients() -> None:
    model, x = _model("convolution")
    totals: list[bytes] = []
    for _ in range(4):
        loss = model(x).square().sum()
        loss.item()
        loss.backward(retain_graph=True)
        loss.backward()
        with wf.no_grad():
            model(x).sum().item()
        totals += [p.grad.numpy().tobytes() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
    plain, x = _model("convolution")
    expected: list[bytes] = []
    for _ in range(4):
        loss = plain(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        with wf.no_grad():
            plain(x)
        expected += [p.grad.numpy().tobytes() for p in plain.parameters() if p.grad is not None]
        plain.zero_grad()
    assert totals == expected
