"""Layers against their formulas, and errors for bad input."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.nn import functional as F

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def close(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_linear():
    x, layer = normal(2, 3, 4), nn.Linear(4, 5)
    w, b = (p.detach().numpy() for p in layer.parameters())
    close(layer(wf.tensor(x)), x @ w.T + b)


def test_convolution_is_a_sum_over_windows():
    x, w = normal(2, 3, 5, 6), normal(4, 3, 2, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))
    close(F.conv2d(wf.tensor(x), wf.tensor(w)), np.einsum("nchwij,ocij->nohw", windows, w))


def test_batch_norm_and_its_statistics():
    x, layer = normal(8, 3, 4) * 3 + 1, nn.BatchNorm1d(3)
    mean, var = x.mean((0, 2)), x.var((0, 2))
    expected = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    y = layer(wf.tensor(x))
    close(y, expected)
    close(layer.running_mean, 0.1 * mean)
    close(layer.running_var, 0.9 + 0.1 * var * 32 / 31)
    assert layer.num_batches_tracked.item() == 1
    assert not layer.running_mean.requires_grad
    y.sum().backward()  # after the statistics have been read
    assert layer.bias.grad.tolist() == [32, 32, 32]


def test_cross_entropy():
    x, y = normal(5, 4), RNG.integers(0, 4, 5)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    close(F.cross_entropy(wf.tensor(x), wf.tensor(y)), -logs[np.arange(5), y].mean())


def test_attention():
    q, k, v = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)
    s = q @ k.transpose(0, 2, 1) / 2
    p = np.exp(s) / np.exp(s).sum(-1, keepdims=True)
    close(F.scaled_dot_product_attention(*map(wf.tensor, (q, k, v))), p @ v)
    bias = wf.tensor(normal(3, 5))
    hidden = bias.masked_fill(~wf.ones(3, 5).tril().bool(), -np.inf)
    qkv = [wf.tensor(x) for x in (q, k, v)]
    both = F.scaled_dot_product_attention(*qkv, attn_mask=bias, is_causal=True)
    close(both, F.scaled_dot_product_attention(*qkv, attn_mask=hidden).numpy())


@pytest.mark.parametrize("function", [F.dropout, F.alpha_dropout, F.dropout2d])
def test_dropout(function):
    wf.manual_seed(0)
    x = wf.ones(16, 64, 8, 8)
    y = function(x, 0.25, training=True).numpy()
    assert y.mean() == pytest.approx(1 if function is not F.alpha_dropout else y.mean(), rel=0.03)
    if function is F.dropout:
        assert sorted(np.unique(y)) == [0, pytest.approx(4 / 3)]
        assert (y == 0).mean() == pytest.approx(0.25, rel=0.02)
    if function is F.dropout2d:
        assert all(len(np.unique(channel)) == 1 for channel in y.reshape(-1, 64))
    assert function(x, 0.25, training=False) is x


def test_dropout_draws_again_and_its_gradient_uses_the_same_mask():
    layer, x = nn.Dropout(0.5), wf.ones(100, requires_grad=True)
    first, second = layer(x), layer(x)
    first.sum().backward()
    assert (x.grad.numpy() == first.detach().numpy()).all()
    assert (first.detach().numpy() != second.detach().numpy()).any()
    assert nn.functional.dropout(x, 1.0).detach().numpy().sum() == 0


def test_in_place():
    x = wf.tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0, 2]
    w = wf.tensor([-1.0, 2.0], requires_grad=True)
    h = w * 3
    F.relu(h, inplace=True).sum().backward()
    assert w.grad.tolist() == [0, 3] and h.tolist() == [0, 6]


def test_weights_can_be_tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.table.weight

        def forward(self, i):
            return self.head(self.table(i))

    model = Tied()
    model(wf.tensor([1, 2])).sum().backward()
    assert len(list(model.parameters())) == 1 and model.table.weight.grad.shape == (5, 3)


def test_a_padding_row_learns_nothing():
    table = nn.Embedding(4, 2, padding_idx=-1)
    assert table.weight[3].tolist() == [0, 0]
    table(wf.tensor([3, 1, 3])).sum().backward()
    assert table.weight.grad.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]


def test_half_precision():
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU()).bfloat16()
    y = model(wf.tensor(normal(3, 4)).to(wf.bfloat16))
    assert y.dtype is wf.bfloat16
    y.sum().backward()
    assert model[0].weight.grad.dtype is wf.bfloat16


def labels(count):
    return wf.tensor(np.full(count, 7))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.MaxPool1d(2, 0)(wf.ones(1, 2, 4)), ShapeError, "stride: expected numbers from"),
        (lambda: nn.AvgPool1d(0)(wf.ones(1, 2, 4)), ShapeError, "kernel_size: expected numbers"),
        (
            lambda: nn.MaxPool2d(2, dilation=0)(wf.ones(1, 1, 4, 4)),
            ShapeError,
            "dilation: expected",
        ),
        (lambda: nn.Linear(3, 2)(wf.ones(1, 4)), ShapeError, r"linear: expected an input whose"),
        (lambda: nn.Conv2d(3, 2, 3)(wf.ones(1, 4, 8, 8)), ShapeError, "for 4 channels"),
        (lambda: nn.Conv2d(3, 2, 3)(wf.ones(8, 8)), ShapeError, r"input \(N, C, H, W\)"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ShapeError, "groups that divide in_channels 3"),
        (lambda: nn.Conv1d(3, 4, 3, 2, "same"), ValueError, "'same' goes with stride 1"),
        (lambda: nn.MaxPool2d(2, padding=2)(wf.ones(1, 1, 4, 4)), ShapeError, "half of kernel"),
        (lambda: nn.BatchNorm1d(3)(wf.ones(1, 3)), ShapeError, "more than 1 value per channel"),
        (lambda: nn.BatchNorm2d(3)(wf.ones(2, 3)), ShapeError, "input of rank 4"),
        (lambda: nn.LayerNorm(3)(wf.ones(2, 4)), ShapeError, r"an input \(\.\.\., 3\)"),
        (lambda: nn.GroupNorm(2, 3), ShapeError, "divides 3 channels"),
        (lambda: nn.Embedding(3, 2)(wf.ones(2)), DTypeError, "indices of integers, got float32"),
        (lambda: nn.Embedding(3, 2)(labels(2)).tolist(), OutOfRangeError, "index < 3, got 7"),
        (lambda: nn.Dropout(1.5), ValueError, "probability p from 0 to 1, got 1.5"),
        (lambda: nn.LSTM(3, 4)(wf.ones(5, 2, 2)), ShapeError, r"input \(L, N, 3\)"),
        (lambda: nn.LSTM(3, 4)(wf.ones(5, 3), (wf.ones(2, 4),) * 2), ShapeError, "a state of"),
        (lambda: nn.MultiheadAttention(4, 3), ShapeError, "num_heads that divides embed_dim"),
        (lambda: F.cross_entropy(wf.ones(2, 3), labels(3)), ShapeError, r"target of shape \(2,\)"),
        (lambda: F.cross_entropy(wf.ones(2, 3), labels(2)).item(), OutOfRangeError, "got 7"),
        (lambda: F.nll_loss(wf.ones(2, 3), labels(2)).item(), OutOfRangeError, "got 7"),
        (lambda: F.mse_loss(wf.ones(2), wf.ones(2), reduction="all"), ValueError, "none, mean"),
        (lambda: F.pad(wf.ones(1, 3), (3, 0), "reflect"), ShapeError, "cannot pad a dimension"),
        (lambda: F.interpolate(wf.ones(1, 1, 3), 4, mode="bilinear"), ValueError, "modes"),
    ],
)
def test_faults_name_the_line(make, error, text):
    with pytest.raises(error, match=text) as caught:
        make()
    assert "created at test_layers_by_formula.py" in str(caught.value)


def test_a_dilated_window_may_see_no_pixel():
    x = wf.ones(1, 1, 1, requires_grad=True)
    for indices in (False, True):
        pool = nn.MaxPool1d(2, padding=1, dilation=2, return_indices=indices)
        y = pool(x)[0] if indices else pool(x)
        assert y.tolist() == [[[-wf.inf]]]
        (grad,) = wf.autograd.grad(y.sum(), [x])
        assert grad.tolist() == [[[0.0]]]


def test_constants():
    assert (wf.e, wf.inf, wf.pi) == (np.e, np.inf, np.pi) and wf.nan != wf.nan
    assert wf.ones(2)[wf.newaxis].shape == (1, 2)
