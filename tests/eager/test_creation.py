"""Tensors from data, shapes and numbers: NumPy's values, PyTorch's dtypes."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import at_most

import weft as wf
from weft import errors

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
DTYPES = [wf.float32, wf.float64, wf.float16, wf.bfloat16, wf.int64, wf.int32, wf.uint8, wf.bool]


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, wf.int64, ()),
        (3.5, wf.float32, ()),
        (True, wf.bool, ()),
        ([True, 2], wf.int64, (2,)),
        ([1, 2.5], wf.float32, (2,)),
        ([], wf.float32, (0,)),
        ([[]], wf.float32, (1, 0)),
        ([[1, 2], [3, 4]], wf.int64, (2, 2)),
        ((1.0, 2.0), wf.float32, (2,)),
        (np.float64(1), wf.float64, ()),
        ([np.float64(1)], wf.float64, (1,)),
        ([np.float32(1), 2.0], wf.float32, (2,)),
        ([np.array([1.0, 2.0])], wf.float64, (1, 2)),
        (np.ones(2, np.float64), wf.float64, (2,)),
        (np.ones(2, ml_dtypes.bfloat16), wf.bfloat16, (2,)),
        (np.ones(2, ">f4"), wf.float32, (2,)),
        (range(3), wf.int64, (3,)),
    ],
)
def test_types_of_data(data, dtype, shape):
    x = wf.tensor(data)
    assert (x.dtype, x.shape) == (dtype, shape)
    assert np.array_equal(x.numpy().astype(np.float64), np.asarray(data, np.float64))
    assert wf.as_tensor(data).dtype is dtype


def test_lists_of_tensors():
    assert wf.tensor([wf.tensor(1.0), 2.0]).dtype is wf.float32
    assert wf.tensor([wf.tensor(1.0, dtype=wf.double), 2.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_lists_of_numbers_of_half_precision(requires_grad):
    for dtype in (wf.bfloat16, wf.float16):
        x = wf.tensor(1.5, dtype=dtype, requires_grad=requires_grad)
        found = wf.tensor([x, wf.tensor(2.0, dtype=dtype)])
        assert (found.dtype, found.tolist()) == (dtype, [1.5, 2.0])
        assert wf.tensor([x, 2.0]).tolist() == [1.5, 2.0]


def test_a_list_that_contains_itself():
    endless = [wf.ones(1)]
    endless.append(endless)
    with pytest.raises(TypeError, match="expected at most 64 lists inside one another"):
        wf.tensor(endless)
    deep = 1
    for _ in range(64):
        deep = [deep]
    assert wf.tensor(deep).ndim == 64


@at_most(25)
@given(shape=SHAPES, dtype=st.sampled_from(DTYPES))
def test_constants(shape, dtype):
    for made, number in ((wf.zeros, 0), (wf.ones, 1)):
        for x in (made(*shape, dtype=dtype), made(list(shape), dtype=dtype)):
            assert (x.shape, x.dtype) == (shape, dtype)
            assert np.array_equal(x.numpy(), np.full(shape, number, dtype.numpy))
    x = wf.full(shape, 1, dtype=dtype)
    for like in (wf.zeros_like(x), wf.ones_like(x), wf.full_like(x, 1), wf.empty_like(x)):
        assert (like.shape, like.dtype) == (shape, dtype)
    assert np.array_equal(x.numpy(), np.ones(shape, dtype.numpy))


def test_types_of_filled_tensors():
    assert [wf.full((1,), v).dtype for v in (True, 3, 2.5)] == [wf.bool, wf.int64, wf.float32]
    assert wf.full((2,), wf.tensor(3.5)).tolist() == [3.5, 3.5]
    assert wf.full(3, 7).tolist() == [7, 7, 7]
    assert wf.ones(np.int64(2), wf.tensor(3)).shape == (2, 3)


NUMBERS = st.integers(-20, 20)


@at_most(25)
@given(start=NUMBERS, stop=NUMBERS, step=st.integers(1, 5), floats=st.booleans())
def test_numbers_in_order(start, stop, step, floats):
    step = step if stop >= start else -step
    scale = 0.25 if floats else 1
    found = wf.arange(start * scale, stop * scale, step * scale)
    expected = np.arange(start * scale, stop * scale, step * scale)
    assert found.dtype is (wf.float32 if floats else wf.int64)
    assert np.array_equal(found.numpy(), expected)
    spaced = wf.linspace(start, stop, 7, dtype=wf.float64)
    assert np.allclose(spaced.numpy(), np.linspace(start, stop, 7))
    powers = wf.logspace(start / 10, stop / 10, 5, dtype=wf.float64)
    assert np.allclose(powers.numpy(), np.logspace(start / 10, stop / 10, 5))


def test_arange_takes_types_and_tensors():
    assert wf.arange(wf.tensor(3)).tolist() == [0, 1, 2]
    assert wf.arange(3, dtype=wf.float32).tolist() == [0.0, 1.0, 2.0]
    assert wf.arange(0.0, 1.0, 0.4).dtype is wf.float32
    assert wf.arange(1, 2.5, dtype=wf.int32).tolist() == [1, 2]
    assert wf.arange(3.0, requires_grad=True).is_leaf


@at_most(25)
@given(rows=st.integers(0, 5), columns=st.integers(0, 5), offset=st.integers(-3, 3))
def test_matrices(rows, columns, offset):
    assert np.array_equal(wf.eye(rows, columns).numpy(), np.eye(rows, columns))
    lower = np.stack(np.tril_indices(rows, offset, columns))
    assert np.array_equal(wf.tril_indices(rows, columns, offset).numpy(), lower)
    upper = np.stack(np.triu_indices(rows, offset, columns))
    assert np.array_equal(wf.triu_indices(rows, columns, offset).numpy(), upper)


@at_most(25)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    indexing=st.sampled_from(["ij", "xy"]),
)
def test_grids(sizes, indexing):
    xs = [np.arange(n, dtype=np.float32) for n in sizes]
    found = wf.meshgrid(*[wf.tensor(x) for x in xs], indexing=indexing)
    for x, y in zip(found, np.meshgrid(*xs, indexing=indexing), strict=True):
        assert np.array_equal(x.numpy(), y)


def test_new_tensors_take_the_type():
    x = wf.zeros(2, dtype=wf.float64)
    made = [
        x.new_zeros(3),
        x.new_ones((3,)),
        x.new_empty(3),
        x.new_full((3,), 2),
        x.new_tensor([1, 2, 3]),
    ]
    assert all(y.dtype is wf.float64 and y.shape == (3,) for y in made)
    assert made[3].tolist() == [2.0, 2.0, 2.0]


def test_conversions():
    x = wf.tensor([0.0, 1.5, -2.5])
    assert x.long().tolist() == [0, 1, -2] and x.bool().tolist() == [False, True, True]
    methods = ["float", "double", "half", "bfloat16", "long", "int", "short", "byte", "bool"]
    assert [getattr(wf.ones(1), m)().dtype.name for m in methods] == [
        "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint8", "bool",
    ]  # fmt: skip
    assert x.to(wf.float32) is x and x.to("cpu") is x and x.cpu() is x and x.float() is x
    assert x.to(wf.float32, copy=True) is not x and x.to(wf.float32, False, True) is not x
    assert (
        x.to(wf.ones(1, dtype=wf.int64)).dtype is wf.int64 and x.to("float64").dtype is wf.float64
    )
    assert x.to(wf.device("cpu"), wf.double).type() == "torch.DoubleTensor"
    assert x.type(wf.half).type_as(x).dtype is wf.float32
    assert wf.tensor(x, dtype=wf.int32).tolist() == [0, 1, -2]


def test_gradients_flow_through_conversions_and_clones():
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    (x.double().clone() * 3).sum().backward()
    assert x.grad.dtype is wf.float32 and x.grad.tolist() == [3.0, 3.0]


def test_attributes():
    x = wf.zeros(2, 3, 4)
    assert (x.ndim, x.dim(), x.numel(), x.nelement(), x.nbytes) == (3, 3, 24, 24, 96)
    assert (x.size(), x.size(-1), x.stride(), x.stride(0)) == ((2, 3, 4), 4, (12, 4, 1), 12)
    assert x.element_size() == x.itemsize == 4 and x.is_contiguous() and x.contiguous() is x
    assert x.is_leaf and not x.is_cuda and x.is_floating_point() and str(x.device) == "cpu"
    assert repr(x.device) == "device(type='cpu')" and x.device == wf.device("cpu")
    assert (int(wf.tensor(3.7)), float(wf.tensor(2)), [5, 6][wf.tensor(1)]) == (3, 2.0, 6)
    assert bool(wf.tensor([[1]])) and not wf.tensor(0.0) and complex(wf.tensor(2.0)) == 2
    assert {x: 1}[x] == 1  # hashed by identity


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: wf.tensor([[1], [2, 3]]),
            errors.ShapeError,
            "tensor: expected nested lists of equal lengths, got [[1], [2, 3]]",
        ),
        (lambda: wf.tensor("a"), errors.DTypeError, "tensor: expected numbers, got 'a'"),
        (lambda: wf.tensor([None]), errors.DTypeError, "tensor: expected numbers, got [None]"),
        (
            lambda: wf.tensor(300, dtype=wf.uint8),
            errors.DTypeError,
            "tensor: expected numbers that uint8 holds, got 300",
        ),
        (lambda: wf.tensor([1], dtype="int7"), errors.DTypeError, "tensor: dtype: expected one"),
        (
            lambda: wf.zeros(-1),
            errors.ShapeError,
            "zeros: expected dimensions that are not negative, got (-1,)",
        ),
        (
            lambda: wf.zeros(2.5),
            errors.DTypeError,
            "zeros: expected integers as dimensions, got 2.5",
        ),
        (
            lambda: wf.ones("ab"),
            errors.DTypeError,
            "ones: expected integers as dimensions, got 'ab'",
        ),
        (
            lambda: wf.arange(0, 5, -1),
            errors.ShapeError,
            "arange: expected a step that leads from 0 to 5, got -1",
        ),
        (
            lambda: wf.zeros(2, device="cuda"),
            errors.ConfigError,
            "device: expected 'cpu', the only device here, got 'cuda'",
        ),
        (
            lambda: wf.from_numpy([1]),
            errors.DTypeError,
            "from_numpy: expected a NumPy array, got list; use tensor()",
        ),
        (
            lambda: wf.meshgrid(wf.ones(1), indexing="yx"),
            errors.ShapeError,
            "meshgrid: expected indexing 'ij' or 'xy', got 'yx'",
        ),
        (
            lambda: wf.tensor([1], requires_grad=True),
            errors.GradientError,
            "requires_grad_: expected floating elements, got int64",
        ),
        (
            lambda: bool(wf.ones(2)),
            errors.ShapeError,
            "bool: a tensor of shape (2,) is neither true nor false",
        ),
        (
            lambda: wf.ones(2).item(),
            errors.ShapeError,
            "item: expected one element, got 2 in shape (2,);",
        ),
        (
            lambda: [1][wf.tensor(0.0)],
            errors.DTypeError,
            "expected an integer tensor as an index, got one of float32",
        ),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(text)
    assert "(created at test_creation.py:" in str(found.value)


def test_nan_alone_is_a_number_like_any_other():
    for data in (float("nan"), np.array(np.nan), [float("nan")] * 2):  # a warning is an error here
        assert wf.tensor(data).isnan().all()
