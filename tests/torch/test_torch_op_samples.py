"""PyTorch's sample inputs of operations: values, gradients and errors."""

import numpy as np
import pytest

import weft as wf
from tests.torch.tensor_case import agree

torch = pytest.importorskip("torch")

X = np.random.default_rng(1).uniform(-2, 2, (3, 4, 4))
Z = (X + 1j * X[::-1])[0]

SAME = {
    "diagonal_copy": lambda m, x: m.diagonal_copy(x, 1, 1, 2),
    "narrow_copy": lambda m, x: m.narrow_copy(x, 1, 1, 2),
    "view_copy": lambda m, x: m.view_copy(x, (4, 12)),
    "unfold_copy": lambda m, x: m.unfold_copy(x, 1, 2, 2),
    "split_copy": lambda m, x: m.split_copy(x, 2, 1)[1],
    "unbind_copy": lambda m, x: m.unbind_copy(x)[2],
    "expand_copy": lambda m, x: m.expand_copy(x[:, :1], (3, 2, 4)),
    "t_copy": lambda m, x: m.t_copy(x[0]),
    "gradient without spacing": lambda m, x: m.gradient(x, spacing=None, dim=1)[0],
    "sum_to_size": lambda m, x: x.sum_to_size(4, 1) + x.sum_to_size((1,)) * x.sum_to_size(()),
    "upsample_nearest": lambda m, x: m.nn.functional.upsample_nearest(x[None], scale_factor=2),
    "upsample_bilinear": lambda m, x: m.nn.functional.upsample_bilinear(x[None], (5, 7)),
    "margin of one number": lambda m, x: m.nn.functional.multi_margin_loss(x[0, 0, 0], m.tensor(0)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAME)
def test_values_and_gradients(name):
    agree(SAME[name], X)


def test_copies_have_memory_of_their_own():
    x = wf.zeros(2, 3)
    copies = wf.view_copy(x, (6,)), wf.t_copy(x), wf.narrow_copy(x, 0, 0, 1), *wf.unbind_copy(x)
    for copy in copies:
        copy.add_(1)
    assert not x.any()
    assert wf.view_copy.__name__ == "view_copy"


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("p", [0, 1, 2, 3, float("inf")])
def test_distances_of_complex_numbers(p, dtype):
    found = []
    for m in (wf, torch):
        x, y = m.tensor(Z[:2].astype(dtype), requires_grad=True), m.tensor(Z[2:].astype(dtype))
        d = m.nn.functional.pairwise_distance(x, y, p=p)
        if p:
            d.sum().backward()
        found.append((d.detach().numpy(), x.grad.numpy() if p else 0))
    for ours, theirs in zip(*found, strict=True):
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9 if dtype is np.complex128 else 1e-5)


def test_silu_of_complex_numbers():
    agree(lambda m, x: m.nn.functional.silu(x), Z, grad=False)


@pytest.mark.parametrize("name", ["conj", "conj_physical", "real", "positive"])
def test_results_are_written_into_the_memory_that_is_given(name):
    x, out = wf.arange(4.0), wf.zeros(4)
    memory = out.numpy()
    assert getattr(wf, name)(x, out=out) is out
    x.add_(1)
    assert out.tolist() == [0, 1, 2, 3] == memory.tolist()


REFUSED = {
    "nansum": (lambda m: m.nansum(m.ones(2), out=m.tensor(0)), RuntimeError),
    "complex": (
        lambda m: m.complex(m.ones(2).double(), m.ones(2).double(), out=m.ones(2) * 1j),
        RuntimeError,
    ),
    "trace": (lambda m: m.trace(m.ones(2, 2, 2)), RuntimeError),
    "rrelu": (lambda m: m.nn.functional.rrelu(m.ones(2), 0.3, 0.1), RuntimeError),
    "diag_embed": (lambda m: m.diag_embed(m.ones(2, 3), dim1=9), IndexError),
    "diag_embed twice": (lambda m: m.diag_embed(m.ones(2, 3), dim1=1, dim2=1), RuntimeError),
    "roll": (lambda m: m.roll(m.ones(5), 0, 2), IndexError),
    "roll of a scalar": (lambda m: m.roll(m.ones(()), 0, 0), IndexError),
    "sum_to_size": (lambda m: m.ones(2, 3).sum_to_size(2), RuntimeError),
    "sum_to_size of more": (lambda m: m.ones(2, 3).sum_to_size(1, 2, 3), RuntimeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name):
    call, error = REFUSED[name]
    for m in (torch, wf):
        with pytest.raises(error):
            call(m)
