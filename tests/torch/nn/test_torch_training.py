"""Networks learn the same in Weft and in PyTorch: the loss after 20 steps."""

import pytest

torch = pytest.importorskip("torch")

from bench.agree import TOLERANCE, _small_twins, difference, losses  # noqa: E402


@pytest.mark.parametrize("name", ["vgg19", "resnet50", "mobilenet", "gnmt", "ncf"])
def test_losses_agree(name):
    ours, theirs = losses(name, small=True)
    assert difference(ours, theirs) <= TOLERANCE
    assert ours[-1] != ours[0]  # it learned something


def test_the_first_losses_of_mobilenet_agree_in_float32_too():
    ours, theirs = losses("mobilenet", small=True, steps=1, dtype="float32")
    assert difference(ours, theirs) <= 1e-5


@pytest.mark.slow  # its classifier has 54 million weights in any case
def test_losses_of_alexnet_agree():
    ours, theirs = losses("alexnet", small=True)
    assert difference(ours, theirs) <= TOLERANCE


def test_a_difference_would_be_seen(monkeypatch):
    twins = _small_twins()["ncf"]
    other = type(twins)(twins.ours, twins.theirs, twins.batch, {**twins.data, "users": 100})
    ours, theirs = losses("ncf", small=True)
    assert difference([ours[-1] + 2e-3], theirs) > TOLERANCE
    monkeypatch.setattr("bench.agree._small_twins", lambda: {"ncf": other})
    changed, _ = losses("ncf", small=True)
    assert difference(changed, theirs) > TOLERANCE
