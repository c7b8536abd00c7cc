"""Bit views, boolean masks as indices, `out=` and shapes, against PyTorch."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
BOTH = (torch, wf)


def same(a, b):
    assert tuple(b.shape) == tuple(a.shape)
    assert tuple(b.stride()) == tuple(a.stride())
    np.testing.assert_array_equal(b.detach().numpy(), a.detach().numpy())


def test_parts_of_complex_numbers_are_views():
    found = []
    for t in BOTH:
        x = t.complex(t.arange(6.0).reshape(2, 3), t.ones(2, 3))
        x.real[0] = 7.0
        x.imag = t.tensor([1.0, 2.0, 3.0])
        t.view_as_real(x)[1, 1, 0] = 9.0
        pairs = t.zeros(2, 2)
        t.view_as_complex(pairs)[1] = 3 + 4j
        found.append([x, x.real, x.imag[1:], t.view_as_real(x), pairs, t.view_as_complex(pairs)])
        assert x.real._base is x
        assert x.imag.data_ptr() == x.data_ptr() + 4
    for a, b in zip(*found, strict=True):
        same(a, b)


def test_gradients_through_parts():
    grads = []
    for t in BOTH:
        x = t.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        y = x * 1
        y.real.mul_(3.0)
        (t.view_as_real(y) ** 2).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("float32", "int32"), ("float32", "int16"), ("float32", "float64"), ("uint8", "int64"),
        ("complex64", "float32"), ("float64", "complex128"), ("bool", "uint8"),
    ],
)  # fmt: skip
def test_bits_as_another_type(source, to):
    found = []
    for t in BOTH:
        x = t.arange(0, 64).reshape(4, 16).to(getattr(t, source))[::2]
        y = x.view(getattr(t, to))
        assert y.data_ptr() == x.data_ptr()
        before = y.clone()
        y.zero_()
        found.append([before, y, x])
    for a, b in zip(*found, strict=True):
        same(a, b)


@pytest.mark.parametrize(
    "change",
    [
        lambda t, x: x.t().view(12),
        lambda t, x: x[:, :2].view(6),
        lambda t, x: x[:, 1:].view(t.float64),
        lambda t, x: x[:, :3].view(t.float64),
        lambda t, x: x.t().view(t.float64),
        lambda t, x: x[0, 0].view(t.float64),
        lambda t, x: t.view_as_complex(x),
        lambda t, x: t.view_as_complex(x[:, 1:3]),
        lambda t, x: t.view_as_real(x),
    ],
)
def test_views_that_need_a_copy_raise(change):
    for t in BOTH:
        with pytest.raises(RuntimeError):
            change(t, t.arange(12.0).reshape(3, 4))


def test_view_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"reshape.*contiguous"):
        wf.zeros(2, 3).t().view(6)


MASKS = [
    lambda t: True,
    lambda t: False,
    lambda t: t.tensor(True),
    lambda t: (False, True, ...),
    lambda t: (True, True),
    lambda t: (True, [0, 1], True, True, [1], [[2]]),
    lambda t: (None, True, [1]),
    lambda t: (0, True),
    lambda t: (slice(None), True, t.tensor([True, False, True])),
]


@pytest.mark.parametrize("key", MASKS)
def test_masks_of_rank_0(key):
    results = []
    for t in BOTH:
        x = t.arange(24.0).reshape(2, 3, 4)
        part = x[key(t)]
        x[key(t)] = -1.0
        y = x.clone()
        y[key(t)] = t.full((1, *part.shape), 5.0)
        results.append([part.clone(), x, y])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(b.numpy(), a.numpy())
        assert tuple(b.shape) == tuple(a.shape)


def test_bytes_are_masks():
    found = []
    for t in BOTH:
        x = t.arange(12.0).reshape(4, 3)
        with pytest.warns(UserWarning, match="uint8"):
            part = x[t.tensor([1, 0, 1, 0], dtype=t.uint8)]
        with pytest.warns(UserWarning, match="uint8"):
            x[t.tensor([0, 1, 0, 0], dtype=t.uint8)] = t.tensor([1.0, 2.0, 3.0])
        found.append([part, x])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(b.numpy(), a.numpy())


def test_indices_that_do_not_broadcast():
    for t in BOTH:
        with pytest.raises(IndexError, match="shape mismatch"):
            t.zeros(5, 5)[[0, 1], [0, 1, 2]]


CALLS = [
    lambda t, x, **k: t.add(x, 2, **k),
    lambda t, x, **k: t.exp(x, **k),
    lambda t, x, **k: t.sum(x, 0, **k),
    lambda t, x, **k: t.matmul(x, x.t(), **k),
    lambda t, x, **k: t.cumsum(x, 1, **k),
    lambda t, x, **k: t.zeros(2, 2, **k),
    lambda t, x, **k: t.arange(5.0, **k),
    lambda t, x, **k: t.cat([x, x], **k),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shape", [(0,), None])
def test_out(call, shape):
    found = []
    for t in BOTH:
        x = t.arange(6.0).reshape(2, 3)
        out = t.empty(call(t, x).shape if shape is None else shape)
        assert call(t, x, out=out) is out
        found.append(out)
    np.testing.assert_allclose(found[1].numpy(), found[0].numpy(), rtol=1e-6)


def test_out_of_several_results():
    found = []
    for t in BOTH:
        values, indices = t.empty(0), t.empty(0, dtype=t.int64)
        result = t.max(t.tensor([[3.0, 1.0], [2.0, 5.0]]), 1, out=(values, indices))
        assert result.values is values
        assert result.indices is indices
        found.append([values, indices])
    for a, b in zip(*found, strict=True):
        same(a, b)


def test_out_that_raises():
    for t in BOTH:
        with pytest.raises(RuntimeError):
            t.add(t.ones(2), 1.5, out=t.zeros(2, dtype=t.int64))
        with pytest.raises(RuntimeError):
            t.add(t.ones(2, requires_grad=True), 1.5, out=t.zeros(2))
    with pytest.raises(wf.errors.DTypeError, match="out: expected a tensor"):
        wf.add(wf.ones(2), 1, out=[1.0, 2.0])


def test_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(wf.tanh)) is wf.tanh


def test_shapes():
    for t in BOTH:
        size = t.zeros(2, 3, 4).shape
        assert size.numel() == 24
        assert size == (2, 3, 4)
        assert size[1:].numel() == 12
        assert (size + t.Size([5])).numel() == 120
        assert (size * 2).numel() == (2 * size).numel() == 576
        assert size[-1] == 4
        assert type(size[:1]) is type(size) is t.Size
        assert t.zeros(size=size).shape == size


@pytest.mark.parametrize("data", [[1 + 2j, -3 - 0.5j], [1 + 0j, 2 - 1j], [1e9 + 1j], []])
def test_complex_numbers_as_text(data):
    texts = [str(t.tensor(data, dtype=t.complex64)) for t in BOTH]
    assert texts[1] == texts[0].replace("torch.", "")
    assert wf.tensor([1j]).dtype is wf.complex64


def test_data_exchanged():
    for t in BOTH:
        x, y = t.ones(2, requires_grad=True), t.zeros(2)
        x.data, y.data = y.data, x.data
        assert (x.tolist(), y.tolist()) == ([0.0, 0.0], [1.0, 1.0])
        assert x.requires_grad
        assert x.is_leaf


def test_what_was_detached_stays_when_data_is_assigned():
    for t in BOTH:
        x = t.ones(2, requires_grad=True)
        old = x.detach()
        row = old[0]
        x.data = t.full((3,), 4.0)
        with t.no_grad():
            x.add_(1)
            old.mul_(7)
        assert (x.tolist(), old.tolist(), row.item()) == ([5.0] * 3, [7.0, 7.0], 7.0)
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0] * 3


def test_data_of_a_view():
    for t in BOTH:
        x = t.zeros(2)
        part = x[:1]
        part.data = t.tensor([5.0])
        part.add_(1)
        assert (x.tolist(), part.tolist()) == ([0.0, 0.0], [6.0])


def test_bits_of_a_scalar():
    for t in BOTH:
        x = t.tensor(1.5, dtype=t.float64).view(t.complex64)
        assert tuple(x.shape) == ()
        assert tuple(t.tensor(True).view(t.uint8).shape) == ()
