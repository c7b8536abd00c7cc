"""Arithmetic, comparison and selection of tensors, against NumPy."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
import weft.numpy as wnp
from tests.strategies import broadcastable
from weft.errors import DTypeError, GradientError, ShapeError

drawn = at_most(6)
pairs = broadcastable(2, max_rank=3, high=5)


def numbers(shape, seed, low=0.5, high=3.0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


SAME_NAMES = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "power",
    "floor_divide", "remainder", "fmod", "hypot", "logaddexp", "copysign", "less", "less_equal",
    "greater", "greater_equal", "not_equal", "logical_and", "logical_or", "logical_xor", "arctan2",
    "heaviside",
]  # fmt: skip


@given(pairs, st.integers(0, 99))
@drawn
def test_functions_of_two(shapes, seed):
    x, y = numbers(shapes[0], seed), numbers(shapes[1], seed + 1)
    found = [getattr(wf, name)(wf.tensor(x), y) for name in SAME_NAMES]
    for name, z in zip(SAME_NAMES, found, strict=True):
        wanted = getattr(np, name)(x, y)
        np.testing.assert_allclose(z.numpy(), wanted, rtol=2e-6, atol=1e-6, err_msg=name)


OF_ONE = [
    "negative", "absolute", "sign", "square", "exp", "expm1", "log", "log1p", "log2", "log10",
    "sqrt", "cbrt", "reciprocal", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsinh", "arctan",
    "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "signbit", "exp2", "deg2rad",
    "rad2deg", "sinc", "positive", "logical_not", "nan_to_num",
]  # fmt: skip


@given(pairs, st.integers(0, 99))
@drawn
def test_functions_of_one(shapes, seed):
    x = numbers(shapes[0], seed)
    found = [(name, y) for name in OF_ONE for y in both(name, x)]
    for name, y in found:
        wanted = getattr(np, name)(x)
        np.testing.assert_allclose(y.numpy(), wanted, rtol=3e-6, atol=2e-6, err_msg=name)


def both(name, x):
    """What the function gives, and the method."""
    return getattr(wf, name)(x), getattr(wf.tensor(x), name)()


@given(pairs, st.integers(0, 99))
@drawn
def test_operators_and_their_reflections(shapes, seed):
    a, b = numbers(shapes[0], seed), numbers(shapes[1], seed + 1)
    x, y = wf.tensor(a), wf.tensor(b)
    for found, expected in [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x // y, a // b),
        (x % y, a % b), (x**y, a**b), (2 - x, 2 - a), (2 / x, 2 / a), (2**x, 2**a),
        (7 // x, 7 // a), (7 % x, 7 % a), (-x, -a), (abs(-x), a), (x > y, a > b), (x <= 1, a <= 1),
        (x == y, a == b), (x != y, a != b), (divmod(x, y)[1], a % b), (b + x, b + a),
    ]:  # fmt: skip
        np.testing.assert_allclose(found.numpy(), expected, rtol=3e-6, atol=1e-6)


def test_bits_are_numpys():
    a, b = np.array([5, -3, 12]), np.array([3, 1, 2])
    x, y = wf.tensor(a), wf.tensor(b)
    for found, expected in [
        (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x << y, a << b),
        (x >> y, a >> b),
        (1 | x, 1 | a), (6 & x, 6 & a), (1 << y, 1 << b),
    ]:  # fmt: skip
        np.testing.assert_array_equal(found.numpy(), expected)


def test_selection():
    a = numbers((3, 4), 0)
    x = wf.tensor(a)
    for found, expected in [
        (wf.where(x > 1, x, 0), np.where(a > 1, a, 0)),
        (x.clamp(1, 2), a.clip(1, 2)),
        (wf.clip(x, min=1.5), a.clip(1.5)),
        (x.masked_fill(x > 2, -1), np.where(a > 2, -1, a)),
        (wf.lerp(x, 2 * x, 0.25), 1.25 * a),
        (wf.addcmul(x, x, x, value=2), a + 2 * a * a),
        (wf.addcdiv(x, x, x + 1), a + a / (a + 1)),
    ]:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_changes_in_place_keep_the_element_type():
    x = wf.tensor([1, 2, 3])
    x += 1
    x *= x
    assert x.dtype is wf.int64 and x.tolist() == [4, 9, 16]
    x.sub_(wf.tensor(4)).clamp_(max=7)
    assert x.tolist() == [0, 5, 7]
    y = wf.tensor([1.5, 2.5])
    y += wf.tensor([1, 2])
    y.lerp_(wf.zeros(2), 0.5).neg_().copy_(-y)
    assert y.tolist() == [1.25, 2.25]


@pytest.mark.parametrize(
    "change, error, text",
    [
        (lambda: wf.tensor([1]).add_(0.5), DTypeError, "does not fit into a tensor of int64"),
        (lambda: wf.tensor([True]).add_(1), DTypeError, "does not fit into a tensor of bool"),
        (lambda: wf.ones(3).add_(wf.ones(2, 3)), ShapeError, r"expected \(3,\), got \(2, 3\)"),
        (lambda: wf.ones(3, requires_grad=True).mul_(2), GradientError, "inside no_grad"),
        (lambda: wf.ones(3).fill_(wf.ones(3)), DTypeError, "expected a number"),
        (lambda: wf.ones(1).expand(3).add_(1), ShapeError, "clone\\(\\) it first"),
    ],
)
def test_changes_that_cannot_be(change, error, text):
    with pytest.raises(error, match=text) as raised:
        change()
    assert "test_arithmetic.py" in str(raised.value)


def test_a_changed_value_under_no_grad_keeps_its_history():
    w = wf.ones(2, requires_grad=True)
    y = w * 3
    with wf.no_grad():
        y.mul_(10)
    z = w * 2
    z.data.zero_()
    (y + z).sum().backward()
    assert y.tolist() == [30, 30] and z.tolist() == [0, 0] and w.grad.tolist() == [5, 5]


def test_what_is_recorded_under_no_grad_is_a_constant():
    w = wf.tensor([2.0], requires_grad=True)
    y = w * 1
    with wf.no_grad():
        factor = y * 3
    (y * factor + y * y.detach()).sum().backward()
    assert w.grad.tolist() == [8]


def test_numbers_are_no_part_of_the_program():
    x = wf.ones(3)
    for lr in (0.1, 0.2, 0.3):
        np.testing.assert_allclose((x * lr + lr).numpy(), 2 * np.float32(lr))


@pytest.mark.parametrize("product", [lambda: wf.einsum("ij"), wf.chain_matmul])
def test_a_product_of_nothing_raises(product):
    with pytest.raises(ShapeError, match="expected at least one operand"):
        product()


BY_ZERO = [
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: wf.fmod(x, y),
    lambda x, y: wf.floor_divide(x, y),
    lambda x, y: wf.div(x, y, rounding_mode="trunc"),
    lambda x, y: x.clone().floor_divide_(y),
    divmod,
]


@pytest.mark.parametrize("function", BY_ZERO)
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_whole_numbers_by_zero(function, dtype):
    x = wf.tensor([5, 7], dtype=dtype)
    for y in (0, wf.tensor([1, 0], dtype=dtype), wf.tensor(0, dtype=dtype)):
        with pytest.raises(ZeroDivisionError, match="expected integer divisors other"):
            wf.stack(function(x, y)).tolist() if function is divmod else function(x, y).tolist()
    zero, fine = wf.zeros(2), wf.tensor([1, 2], dtype=dtype)
    assert x.tolist() == [5, 7]
    for y in (zero, 0.0):  # of floating numbers, that is no error
        function(x.float(), y)
    found = function(x, fine)
    assert (found[0] if function is divmod else found).dtype is x.dtype


def test_divisors_are_checked_in_what_is_compiled():
    whole = wf.compile(lambda x, y: x // y)
    for _ in range(4):
        assert whole(wf.arange(4), wf.arange(1, 5)).tolist() == [0, 0, 0, 0]
    with pytest.raises(ZeroDivisionError):
        whole(wf.arange(4), wf.arange(4)).tolist()
    with pytest.raises(ZeroDivisionError):
        (5 // wf.tensor([0])).item()
    assert (wnp.array([5]) // wnp.array([0])).tolist() == [0]
    assert wf.func.vmap(lambda x, y: x // y)(wf.arange(4), wf.full((4,), 2)).tolist() == [
        0,
        0,
        1,
        1,
    ]


def test_a_list_takes_the_elements_of_a_tensor():
    x, found = wf.tensor([2.0, 3.0]), [1.0, 1.0]
    found += x
    assert isinstance(found, list) and [float(v) for v in found] == [1, 1, 2, 3]
    assert [0] * wf.tensor(2) == [0, 0] and (x == [2.0, 3.0]) is False
    for function in (operator.add, operator.sub, operator.truediv, operator.matmul, operator.lt):
        for pair in ((x, [1.0, 2.0]), ((1.0, 2.0), x)):
            with pytest.raises(TypeError):
                function(*pair)


@pytest.mark.parametrize("x", [wf.tensor(2.0), wf.tensor([2, 3]), wf.ones(2, dtype=wf.float16)])
def test_scalars_of_numpy_are_numbers(x):
    # as PyTorch takes them: they decide the kind, and not the dtype
    wide = wf.float32 if x.dtype is wf.int64 else x.dtype
    for scalar in (np.float64(1.5), np.float32(1.5), np.float16(1.5)):
        for y in (x * scalar, scalar - x, x / scalar, x**scalar, wf.clamp(x, min=scalar)):
            assert y.dtype is wide
        assert (x + scalar).tolist() == (x + 1.5).tolist()
    assert (x + np.int8(1)).dtype is x.dtype and (np.int64(2) * x).tolist() == (2 * x).tolist()
    assert wf.full((1,), np.int32(3)).dtype is wf.int64
    y = wf.ones(2)
    assert wf.addcmul(y, y, y, value=np.float64(0.5)).tolist() == [1.5, 1.5]
