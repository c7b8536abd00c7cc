"""Tensors from data and shapes, conversions and printing against PyTorch's."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as wf

torch = pytest.importorskip("torch")

SHAPES = [(), (1,), (5,), (30,), (3, 4), (2, 3, 4), (0,), (0, 3), (1200,), (40, 40), (3, 500)]
SCALES = [1.0, 1e6, 1e-6, 1e9]


def words(x):
    """A tensor's text; a shorter name of the type may have been put on the line before."""
    return re.sub(r"\s+", " ", repr(x).replace("torch.", ""))


@settings(max_examples=80, deadline=None)
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
