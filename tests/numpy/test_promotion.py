"""Dtypes of results against NumPy's promotion table."""

import itertools

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft.errors import DTypeError

NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


NUMBERS = [0.1, 0.2]


def arrays(name):
    return wnp.ones((2,), dtype=name), np.ones((2,), dtype=name)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_of_two_arrays(a, b):
    (x, p), (y, q) = arrays(a), arrays(b)
    expected = np.result_type(p, q).name
    assert wnp.result_type(x, y).name == expected
    assert (x + y).dtype.name == expected
    assert (x + y[0]).dtype.name == expected, "rank 0 counts like any other"
    assert wnp.can_cast(x.dtype, y.dtype) == (np.promote_types(a, b) == np.dtype(b))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [True, 2, 2.5, 2j])
def test_python_numbers_are_weak(name, number):
    x, p = arrays(name)
    expected = (p * number).dtype.name
    assert (x * number).dtype.name == (number * x).dtype.name == expected
    assert wnp.result_type(x, number).name == expected


def test_division_and_functions_of_integers_give_float64():
    x = wnp.asarray([1, 2])
    assert (x / 2).dtype is wnp.sin(x).dtype is wnp.mean(x).dtype is wnp.float64
    assert wnp.asarray(1.5).dtype is wnp.zeros(2).dtype is wnp.sin(1).dtype is wnp.float64
    assert wnp.add([1.5], [0.1, 0.2]).tolist() == (wnp.asarray([1.5]) + NUMBERS).tolist()


def test_bfloat16_stands_beside_other_types():
    assert wnp.result_type(wnp.bfloat16, wnp.float16) is wnp.float32
    assert wnp.result_type(wnp.bfloat16, wnp.float32) is wnp.float32
    assert wnp.result_type(wnp.bfloat16, wnp.int32).is_floating


def test_limits_of_types():
    assert wnp.finfo(wnp.float32).eps == np.finfo(np.float32).eps
    assert wnp.finfo(wnp.complex128).dtype is wnp.float64
    assert wnp.finfo(wnp.float64).tiny == np.finfo(np.float64).tiny
    info = wnp.iinfo(wnp.asarray([1], dtype="uint8"))
    assert (info.bits, info.min, info.max) == (8, 0, 255)
    with pytest.raises(DTypeError, match="finfo: expected a floating type, got int32"):
        wnp.finfo(wnp.int32)
    with pytest.raises(DTypeError, match="iinfo: expected an integer type, got float64"):
        wnp.iinfo(wnp.float64)


def test_kinds_of_types():
    assert wnp.isdtype(wnp.int8, "signed integer") and wnp.isdtype(wnp.int8, ("bool", "integral"))
    assert wnp.isdtype(wnp.int8, wnp.int8) and not wnp.isdtype(wnp.int8, "real floating")
    with pytest.raises(DTypeError, match=r"isdtype: expected one of bool, .* got 'odd'"):
        wnp.isdtype(wnp.int8, "odd")
    with pytest.raises(DTypeError, match="result_type: expected an array or a dtype"):
        wnp.result_type(1, 2.5)


def test_types_make_numbers_and_are_known_to_numpy():
    assert type(wnp.float32(1.5)) is np.float32
    assert wnp.int64(wnp.asarray([1.5])).tolist() == [1]
    assert np.zeros(2, wnp.float32).dtype == np.float32
    assert wnp.float32.type is np.float32


def test_results_are_of_the_kind_of_the_first_tensor():
    x, t = wnp.asarray([1.0]), wf.tensor([1.0])
    assert type(x + t) is wnp.ndarray and type(t + x) is wf.Tensor
    assert type(wnp.sin(t)) is wf.Tensor and type(wnp.sin([1.0])) is wnp.ndarray
