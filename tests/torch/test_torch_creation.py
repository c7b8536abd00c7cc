"""Tensors from data and shapes, conversions and printing against PyTorch's."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf

torch = pytest.importorskip("torch")

SHAPES = [(), (1,), (5,), (30,), (3, 4), (2, 3, 4), (0,), (0, 3), (1200,), (40, 40), (3, 500)]
SCALES = [1.0, 1e6, 1e-6, 1e9]


def words(x):
    """A tensor's text; a shorter name of the type may have been put on the line before."""
    return re.sub(r"\s+", " ", repr(x).replace("torch.", ""))


@at_most(80)
@given(
    shape=st.sampled_from(SHAPES),
    scale=st.sampled_from(SCALES),
    whole=st.booleans(),
    holes=st.booleans(),
    dtype=st.sampled_from(["float32", "float64", "float16", "int64", "uint8", "bool"]),
    seed=st.integers(0, 9),
)
def test_texts(shape, scale, whole, holes, dtype, seed):
    rng = np.random.default_rng(seed)
    x = np.asarray(rng.standard_normal(shape) * scale)
    x = np.round(x) if whole else x
    x = np.where(x > scale, np.nan, x) if holes and dtype.startswith("float") else x
    with np.errstate(all="ignore"):
        array = np.asarray(x).astype(dtype)
    assert words(wf.tensor(array)) == words(torch.tensor(array))


DATA = [3, 2.5, True, [], [[]], [1, 2.5], [True, 2], [[1, 2], [3, 4]], np.float64(2), np.ones(2)]
TYPES = [None, "float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]


@pytest.mark.parametrize(("data", "dtype"), list(itertools.product(DATA, TYPES)))
def test_data(data, dtype):
    kind = None if dtype is None else getattr(torch, dtype)
    ours, theirs = wf.tensor(data, dtype=dtype), torch.tensor(data, dtype=kind)
    assert str(theirs.dtype) == f"torch.{ours.dtype}" and ours.shape == tuple(theirs.shape)
    assert ours.tolist() == theirs.tolist()


CONVERSIONS = [t for t in TYPES if t]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(CONVERSIONS, CONVERSIONS)))
def test_conversions(a, b):
    data = [0, 1, 3]
    ours = wf.tensor(data, dtype=a).to(getattr(wf, b if b != "bool" else "bool_"))
    assert (
        ours.tolist() == torch.tensor(data, dtype=getattr(torch, a)).to(getattr(torch, b)).tolist()
    )


CALLS = [
    lambda t: t.arange(5),
    lambda t: t.arange(1, 2, 0.25),
    lambda t: t.arange(5, 0, -2),
    lambda t: t.linspace(-1, 1, 7),
    lambda t: t.logspace(0, 2, 4),
    lambda t: t.eye(3, 2),
    lambda t: t.full((2, 2), 3),
    lambda t: t.full((2,), True),
    lambda t: t.zeros_like(t.ones(2, 3), dtype=t.int64),
    lambda t: t.full_like(t.ones(2, dtype=t.int32), 7),
    lambda t: t.ones(2).new_full((3,), 2),
    lambda t: t.tril_indices(3, 4, 1),
    lambda t: t.triu_indices(4, 3, -1),
    lambda t: t.meshgrid(t.arange(2), t.arange(3), indexing="xy")[0],
    lambda t: t.as_tensor([1.5]).type_as(t.ones(1, dtype=t.float64)),
    lambda t: t.from_numpy(np.arange(3)).float().double(),
    lambda t: t.tensor([0.0, 2.0]).bool(),
    lambda t: t.zeros(2, 3).size(),
    lambda t: t.zeros(2, 3).stride(),
    lambda t: t.ones(2, 3).element_size(),
]


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    ours, theirs = call(wf), call(torch)
    if isinstance(ours, wf.Tensor):
        assert str(theirs.dtype) == f"torch.{ours.dtype}"
        assert np.allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-7)
    else:
        assert ours == (tuple(theirs) if isinstance(theirs, tuple) else theirs)


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool"]
)
def test_memory_is_shared_both_ways(dtype):
    theirs = torch.arange(4).to(getattr(torch, dtype))
    ours = wf.from_dlpack(theirs)
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr() and back.dtype == theirs.dtype
    ours.zero_()
    ours.tolist()
    assert not theirs.any()
    made = wf.ones(3, dtype=dtype)
    torch.from_dlpack(made)[0] = 0
    assert made.tolist() == [0, 1, 1]


CREATED = {
    "zeros": lambda m, k: m.zeros(2, 3, **k),
    "full": lambda m, k: m.full((2,), 1.5, **k),
    "empty": lambda m, k: m.empty(2, 3, **k),
    "rand": lambda m, k: m.rand(2, 3, **k),
    "randn": lambda m, k: m.randn(2, **k),
    "randint": lambda m, k: m.randint(5, (2,), **k),
    "randperm": lambda m, k: m.randperm(5, **k),
    "normal": lambda m, k: m.normal(0.0, 1.0, (2,), **k),
    "arange": lambda m, k: m.arange(5.0, **k),
    "arange of int": lambda m, k: m.arange(5, **k),
    "linspace": lambda m, k: m.linspace(0, 1, 5, **k),
    "logspace": lambda m, k: m.logspace(0, 1, 5, **k),
    "eye": lambda m, k: m.eye(3, **k),
    "tril_indices": lambda m, k: m.tril_indices(3, 3, **k),
    "triu_indices": lambda m, k: m.triu_indices(3, 3, **k),
    "hann_window": lambda m, k: m.hann_window(5, **k),
    "kaiser_window": lambda m, k: m.kaiser_window(5, **k),
    "zeros_like": lambda m, k: m.zeros_like(m.ones(2), **k),
    "rand_like": lambda m, k: m.rand_like(m.ones(2), **k),
    "randn_like": lambda m, k: m.randn_like(m.ones(2), **k),
    "randint_like": lambda m, k: m.randint_like(m.ones(2), 5, **k),
    "tensor": lambda m, k: m.tensor([1.0], **k),
    "scalar_tensor": lambda m, k: m.scalar_tensor(2.0, **k),
    "new_zeros": lambda m, k: m.ones(2).new_zeros(2, **k),
    "fftfreq": lambda m, k: m.fft.fftfreq(5, **k),
    "rfftfreq": lambda m, k: m.fft.rfftfreq(5, **k),
}
OPTIONS = {
    "requires_grad": lambda m: {"requires_grad": True}, "dtype": lambda m: {"dtype": None},
    "wide": lambda m: {"dtype": m.float64}, "device": lambda m: {"device": "cpu"},
    "layout": lambda m: {"layout": m.strided}, "pin_memory": lambda m: {"pin_memory": False},
    "generator": lambda m: {"generator": m.Generator().manual_seed(1)},
}  # fmt: skip


@pytest.mark.parametrize("name", CREATED)
def test_arguments_of_creation(name):
    def made(m, option):
        try:
            x = CREATED[name](m, OPTIONS[option](m))
        except (TypeError, RuntimeError, ValueError):  # NotImplementedError too
            return None
        return x.requires_grad, x.is_leaf, str(x.dtype).rpartition(".")[2], tuple(x.shape)

    for option in OPTIONS:
        theirs = made(torch, option)
        if theirs is not None or option == "requires_grad":
            assert made(wf, option) == theirs, option
    for wrong in ({"device": "cuda"}, {"layout": "dense"}, {"requires_grad": 1}):
        if made(torch, next(iter(wrong))) is not None:
            with pytest.raises(wf.errors.WeftError):
                CREATED[name](wf, wrong)
