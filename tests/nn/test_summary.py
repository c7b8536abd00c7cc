"""Tables of layers, shapes, parameters and memory."""

import numpy as np
import pytest

import weft as wf
from weft import nn


@pytest.fixture
def model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 10)
    )


def test_summary(model, capsys):
    found = model.summary((2, 1, 4, 4))
    shown = capsys.readouterr().out
    assert "Conv2d" in shown and "(2, 4, 4, 4)" in shown and "698" in shown
    assert str(found).count("\n") > 8 and repr(found) == "<Summary of Sequential: 698 parameters>"
    assert found.parameters == found.trained == 698
    assert [row.parameters for row in found.rows] == [0, 40, 8, 0, 650]
    assert found.rows[2].bytes == 4 * 8 + 4 * 8 + 8
    assert found.rows[0].shapes == ((2, 10),) and found.rows[1].output_bytes == 2 * 64 * 4
    assert found.output_bytes == 4 * (128 + 128 + 128 + 20)


def test_nothing_changes(model):
    before = model[1].running_mean.tolist()
    model[0].eval()
    model.summary(wf.ones(2, 1, 4, 4), show=False)
    assert model[1].running_mean.tolist() == before and model[1].training
    assert not model[0].training and not model[0]._hooks.after


def test_without_inputs_shared_weights_and_depth():
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    found = nn.summary(nn.ModuleList([layer, nn.Sequential(layer)]), depth=1, show=False)
    assert found.parameters == 6 and found.trained == 4 and found.rows[1].shapes == ()
    text = str(found)
    assert "4 parameters are trained, 2 are not" in text and text.count("Linear") == 1


def test_several_outputs():
    found = nn.LSTM(3, 4).summary(np.zeros((5, 2, 3), np.float32), show=False)
    assert found.rows[0].shapes == ((5, 2, 4), (1, 2, 4), (1, 2, 4))
