"""Folding batch norm into the preceding layer, and `skip_init`."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ShapeError, StateError

LAYERS = {
    "conv": (lambda bias: nn.Conv2d(4, 6, 3, groups=2, bias=bias), nn.BatchNorm2d, (2, 4, 5, 5)),
    "transposed": (lambda bias: nn.ConvTranspose1d(4, 6, 3, bias=bias), nn.BatchNorm1d, (2, 4, 5)),
    "linear": (lambda bias: nn.Linear(4, 6, bias=bias), nn.BatchNorm1d, (7, 4)),
}


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_fused_layer_computes_both(kind, bias, affine):
    wf.manual_seed(1)
    make, norm, shape = LAYERS[kind]
    layer, bn = make(bias), norm(6, affine=affine)
    for _ in range(3):
        bn(layer(wf.randn(*shape) * 3 + 1))
    if affine:
        nn.init.uniform_(bn.weight)
        nn.init.uniform_(bn.bias)
    layer.eval()
    bn.eval()
    before = layer.weight.tolist()
    if kind == "linear":
        fused = nn.utils.fuse_linear_bn_eval(layer, bn)
    else:
        fused = nn.utils.fuse_conv_bn_eval(layer, bn, transpose=kind == "transposed")
    x = wf.randn(*shape)
    np.testing.assert_allclose(
        fused(x).detach().numpy(), bn(layer(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    assert layer.weight.tolist() == before and isinstance(fused.bias, nn.Parameter)


def test_what_cannot_be_fused():
    conv, bn = nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2)
    with pytest.raises(StateError, match="in evaluation"):
        nn.utils.fuse_conv_bn_eval(conv, bn)
    with pytest.raises(StateError, match="running statistics"):
        nn.utils.fuse_conv_bn_eval(conv.eval(), nn.BatchNorm1d(2, track_running_stats=False).eval())
    with pytest.raises(ShapeError, match="of 1 or 3 features"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(1, 3).eval(), bn.eval())


def test_a_module_without_initial_values():
    wf.manual_seed(5)
    expected = wf.rand(1).item()
    wf.manual_seed(5)
    layer = nn.utils.skip_init(nn.Linear, 3, out_features=2, dtype=wf.float64)
    assert layer.weight.shape == (2, 3) and layer.weight.dtype is wf.float64
    assert wf.rand(1).item() == expected  # nothing was drawn
    nn.init.ones_(layer.weight)
    assert layer.weight.tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(StateError, match="class of modules"):
        nn.utils.skip_init(dict)
    with pytest.raises(StateError, match="takes device"):
        nn.utils.skip_init(nn.ReLU)
