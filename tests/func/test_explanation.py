"""`weft.explain` shows a whole training step, and runs none of it."""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.errors import TracerError


def test_a_training_step_is_explained_and_not_run():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = wf.optim.Adam(model.parameters())
    x, y = wf.randn(16, 4), wf.tensor([0, 1, 2, 1] * 4)

    def step(x, y, *, scale):
        loss = F.cross_entropy(model(x), y) * scale
        loss.backward()
        optimizer.step()
        return loss

    before = [p.detach().numpy().copy() for p in model.parameters()]
    explanation = wf.explain(step, x, y, scale=2.0)
    for old, new in zip(before, model.parameters(), strict=True):
        np.testing.assert_array_equal(old, new.detach().numpy())
    assert explanation.stages[0].name == "specialized"
    assert "sqrt" in explanation.stages[-1].graph  # the optimizer is part of the step
    assert sum("matmul" in name for name in explanation.kernels) >= 2


def test_what_reads_values_cannot_be_explained():
    with pytest.raises(TracerError):
        wf.explain(lambda x: x * x.sum().item(), wf.ones(3))
