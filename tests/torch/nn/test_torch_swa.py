"""Averages of weights against PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from weft.optim import swa_utils  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
theirs = torch.optim.swa_utils


def pair():
    """The same model in both frameworks."""
    a = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4, momentum=0.3))
    b = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.BatchNorm1d(4, momentum=0.3))
    b.load_state_dict({k: wf.tensor(v.numpy()) for k, v in a.state_dict().items()})
    return a, b


def agree(a, b):
    for name, value in a.state_dict().items():
        np.testing.assert_allclose(
            b.state_dict()[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name
        )


@pytest.mark.parametrize(
    "options",
    [
        lambda utils: {},
        lambda utils: {"avg_fn": utils.get_ema_avg_fn(0.9)},
        lambda utils: {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9), "use_buffers": True},
        lambda utils: {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
    ],
)
def test_averaged_models(options):
    a, b = pair()
    c, d = (
        theirs.AveragedModel(a, **options(theirs)),
        swa_utils.AveragedModel(b, **options(swa_utils)),
    )
    for i in range(4):
        with torch.no_grad(), wf.no_grad():
            for p, q in zip(a.parameters(), b.parameters(), strict=True):
                p.mul_(i + 0.5)
                q.mul_(i + 0.5)
        c.update_parameters(a)
        d.update_parameters(b)
    agree(c, d)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(
        d.eval()(wf.tensor(x)).detach().numpy(),
        c.eval()(torch.tensor(x)).detach().numpy(),
        rtol=1e-4,
        atol=1e-5,
    )


def test_update_bn():
    a, b = pair()
    batches = [np.random.default_rng(i).normal(size=(5, 3)).astype(np.float32) for i in range(3)]
    theirs.update_bn([torch.tensor(x) for x in batches], a.eval())
    swa_utils.update_bn([(wf.tensor(x), None) for x in batches], b.eval())
    agree(a, b)
    assert not b.training
    assert b[1].momentum == 0.3


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_swalr(strategy):
    p, q = torch.nn.Parameter(torch.ones(1)), wf.nn.Parameter(wf.ones(1))
    a, b = torch.optim.SGD([p], lr=1.0), wf.optim.SGD([q], lr=1.0)
    c = theirs.SWALR(a, 0.1, anneal_epochs=3, anneal_strategy=strategy)
    d = swa_utils.SWALR(b, 0.1, anneal_epochs=3, anneal_strategy=strategy)
    for _ in range(5):
        a.step()
        b.step()
        c.step()
        d.step()
        assert b.param_groups[0]["lr"] == pytest.approx(a.param_groups[0]["lr"])


def test_one_way_to_average():
    with pytest.raises(ValueError, match="got both"):
        swa_utils.AveragedModel(
            pair()[1], avg_fn=swa_utils.get_swa_avg_fn(),
            multi_avg_fn=swa_utils.get_swa_multi_avg_fn(),
        )  # fmt: skip
    with pytest.raises(ValueError, match="decay"):
        swa_utils.get_ema_avg_fn(2)
