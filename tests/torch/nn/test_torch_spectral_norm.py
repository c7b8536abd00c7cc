"""Spectral norms train as PyTorch's do, also if values are read between two calls."""

import copy

import numpy as np
import pytest

import weft
from weft import nn

torch = pytest.importorskip("torch")

WEIGHT = (np.arange(12, dtype=np.float32).reshape(2, 3, 2) / 5 - 1) ** 3
ROWS = np.linspace(-1, 2, 12, dtype=np.float32).reshape(2, 3, 2)


def network(lib, kind, dim, trained):
    layer = lib.nn.Conv1d(3, 2, 2, bias=False)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor(WEIGHT))
    utils = lib.nn.utils
    made = (utils.parametrizations if kind == "new" else utils).spectral_norm(layer, dim=dim)
    part = layer.parametrizations.weight[0] if kind == "new" else layer
    u, v = (part._u, part._v) if kind == "new" else (part.weight_u, part.weight_v)
    with lib.no_grad():
        u.copy_(lib.ones(len(u)) / len(u) ** 0.5)
        v.copy_(lib.ones(len(v)) / len(v) ** 0.5)
    for p in layer.parameters():
        p.requires_grad_(trained)
    return made, (u, v)


def trained(lib, kind, dim, looks, learns):
    layer, vectors = network(lib, kind, dim, learns)
    x = lib.tensor(ROWS, requires_grad=True)
    found = []
    for _ in range(3):
        first = layer(x)
        if looks:
            found.append(first.sum().item())
        second = layer(-x * 0.5)
        if looks:
            second.tolist()
        loss = (first**2).sum() + second.exp().sum()
        leaves = [x, *[p for p in layer.parameters() if learns]]
        gs = lib.autograd.grad(loss, leaves, create_graph=True)
        more = lib.autograd.grad(sum((g**2).sum() for g in gs), leaves)
        found += [loss, *gs, *more, *[v.clone() for v in vectors]]
        with lib.no_grad():
            for p, g in zip(leaves[1:], gs[1:], strict=True):
                p.sub_(g * 0.01)
    return [np.asarray(y if isinstance(y, float) else y.detach().numpy()) for y in found]


@pytest.mark.parametrize("kind", ["old", "new"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("learns", [False, True])
def test_training(kind, dim, looks, learns):
    theirs = trained(torch, kind, dim, looks, learns)
    ours = trained(weft, kind, dim, looks, learns)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-4)


def test_traced_calls_have_second_derivatives():
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)).eval()
    twin = copy.deepcopy(layer)
    x = weft.ones(2, 3, requires_grad=True)

    def penalty(run):
        (g,) = weft.autograd.grad((run(x) ** 3).sum(), x, create_graph=True)
        return (g**2).sum()

    penalty(weft.func.jit(layer)).backward()
    penalty(twin).backward()
    for p, q in zip(layer.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4)
