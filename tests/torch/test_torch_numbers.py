"""gcd, powers of 2, indices, complex parts and memory formats against PyTorch."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, draw, same, seeds, shapes  # noqa: E402
from weft.errors import DTypeError, ShapeError  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
few = at_most(3, phases=[Phase.generate])


@given(shapes, seeds, st.sampled_from([np.int64, np.int32, np.int8, np.uint8]))
@few
def test_divisors(shape, seed, dtype):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 12, s).astype(dtype) for s in (shape, shape[-1:]))
    agree(lambda m, x, y: (m.gcd(x, y), m.lcm(x, y), x.gcd(y), x.clone().lcm_(y)), x, y, grad=False)
    with pytest.raises(DTypeError, match="gcd: expected integers, got float32"):
        wf.gcd(wf.ones(2), 2)


@given(shapes, seeds)
@few
def test_powers_of_two(shape, seed):
    x = draw(shape, -9, 9, seed)
    whole = np.random.default_rng(seed).integers(-3, 4, shape)
    agree(lambda m, x: tuple(m.frexp(x)), x)
    agree(lambda m, x, y: (m.ldexp(x, y), x.ldexp(y)), x, whole, grad=False)
    agree(lambda m, x, y: m.ldexp(x, y), x, whole.astype(np.float32))
    special = np.array([0.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    agree(lambda m, x: m.frexp(x).mantissa, special, grad=False)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), seeds)
@few
def test_positions(shape, seed):
    flat = np.random.default_rng(seed).integers(0, int(np.prod(shape)), (3,))
    agree(lambda m, i: m.unravel_index(i, shape), flat, grad=False)


@given(shapes, seeds)
@few
def test_parts_of_complex_numbers(shape, seed):
    x, y = draw(shape, 0.2, 2.0, seed=seed), draw(shape, -2.0, -0.2, seed=seed + 1)

    def parts(m, x, y):
        z = m.complex(x, y)
        return (
            m.real(z), z.imag, m.angle(z), z.conj().imag * 1, m.view_as_real(z), m.polar(x, y).real,
            m.isreal(z), x.real, m.conj(x), m.view_as_complex(m.stack([x, y], -1)).imag,
        )  # fmt: skip

    agree(parts, x, y)
    agree(lambda m, x: x.angle(), x, grad=False)
    z = wf.complex(wf.tensor(x), wf.tensor(y))
    assert z.dtype is wf.cfloat and not z.is_conj() and not z.is_neg()
    assert z.resolve_conj() is z
    if len(shape) == 2:
        np.testing.assert_array_equal(z.H.numpy(), z.numpy().conj().T)


def test_parts_refuse():
    with pytest.raises(DTypeError, match="imag: expected complex numbers, got float32"):
        _ = wf.ones(2).imag
    with pytest.raises(ShapeError, match="view_as_complex: expected a last dimension of 2"):
        wf.view_as_complex(wf.ones(3))


def test_memory_formats():
    x = wf.zeros(2, 3, 4, 5)
    assert (
        x.to(memory_format=wf.channels_last) is x and str(wf.channels_last) == "weft.channels_last"
    )
    assert (
        x.contiguous(memory_format=wf.channels_last).clone(memory_format=wf.preserve_format).sum()
        == 0
    )
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for y, other in (
        (x, torch.zeros(2, 3, 4, 5)),
        (last, torch.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)),
    ):
        for name in ("channels_last", "contiguous_format"):
            ours, theirs = getattr(wf, name), getattr(torch, name)
            assert y.is_contiguous(memory_format=ours) == other.is_contiguous(memory_format=theirs)
    assert x.layout is wf.strided and not x.is_meta and not x.is_pinned() and x.pin_memory() is x
    assert wf.nn.Linear(2, 2).to(memory_format=wf.channels_last).weight.shape == (2, 2)
    with pytest.raises(DTypeError, match="memory_format: expected one of weft's, got 'NHWC'"):
        x.contiguous(memory_format="NHWC")


def test_functions_in_place():
    x = wf.tensor([-1.0, 2.0])
    assert wf.relu_(x) is x and x.tolist() == [0.0, 2.0]
    assert wf.clamp_(x, max=1.0).tolist() == [0.0, 1.0]
    assert x.data_ptr() == x.numpy().ctypes.data


@pytest.mark.parametrize(
    "name", ["Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte"]
)
def test_tensors_by_the_name_of_their_type(name):
    def made(m):
        kind = getattr(m, f"{name}Tensor")
        found = kind([[1, 2], [3, 4]])
        assert isinstance(found, kind) and not isinstance(found, m.BoolTensor)
        assert kind(2, 3).shape == (2, 3)
        return found, kind()

    same(made(wf), made(torch))


def test_what_a_view_shows():
    x = wf.zeros(2, 3)
    y = x[1][:2]
    assert y._base is x and y._is_view() and x._base is None and not x._is_view()
