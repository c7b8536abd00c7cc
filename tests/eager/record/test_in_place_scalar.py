"""Scalars that change in place between steps are inputs of the program, not constants."""

import copy

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("change", ["add", "copy", "fill"])
def test_a_count_that_grows_between_steps(change, compiled):
    wf.manual_seed(0)
    w = nn.Parameter(wf.ones(3))
    optimizer = wf.optim.SGD([w], lr=0.5)
    count = wf.tensor(0, dtype=wf.int64)
    expected = np.ones(3, np.float32)
    seen = []
    with config.override(compile=compiled):
        for i in range(6):
            loss = (w * (count + 1)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            expected = expected - np.float32(0.5) * np.float32(i + 1)
            with wf.no_grad():
                if change == "add":
                    count.add_(1)
                elif change == "copy":
                    count.copy_(wf.tensor(i + 1))
                else:
                    count.fill_(i + 1)
            seen.append(count)
    assert w.detach().numpy().tolist() == expected.tolist()
    assert count.item() == 6


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
def test_an_average_of_models_inside_a_training_loop(compiled, multi, deterministic):
    wf.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5) if multi else None)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    x = wf.tensor(np.random.default_rng(0).standard_normal((8, 3)), dtype=wf.float32)
    own = None
    wf.use_deterministic_algorithms(deterministic)
    try:
        with config.override(compile=compiled):
            for i in range(7):
                ((model(x) - 1) ** 2).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                average.update_parameters(model)
                new = [copy.deepcopy(p.detach().numpy()) for p in model.parameters()]
                if own is None:
                    own = new
                elif multi:
                    own = [0.5 * a + 0.5 * p for a, p in zip(own, new, strict=True)]
                else:
                    own = [a + (p - a) / (i + 1) for a, p in zip(own, new, strict=True)]
    finally:
        wf.use_deterministic_algorithms(False)
    for a, p in zip(own, average.module.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), a, rtol=1e-5, atol=1e-7)
    assert average.n_averaged.item() == 7


def test_an_average_that_is_not_read():
    """As before, without reading the parameters in between."""
    wf.manual_seed(0)
    found = []
    for looks in (True, False):
        wf.manual_seed(0)
        model = nn.Linear(3, 2)
        average = AveragedModel(model)
        optimizer = wf.optim.Adam(model.parameters(), lr=0.1)
        x = wf.ones(4, 3)
        for _ in range(8):
            (model(x) ** 2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            average.update_parameters(model)
            if looks:
                model.weight.tolist()
        found.append([p.detach().numpy() for p in average.module.parameters()])
        assert average.n_averaged.item() == 8
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
