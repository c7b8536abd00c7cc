"""Arguments that are no values are refused instead of becoming NaN, 0 or a default."""

import inspect
import math

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft.errors import WeftError

X = wf.rand(2, 3) * 0.5


def functions():
    for module in (wf.nn.functional, wf.special, wf.linalg):
        for name in dir(module):
            function = getattr(module, name)
            if name[0] != "_" and inspect.isfunction(function):
                yield function


def has_nan(y):
    return isinstance(y, wf.Tensor) and y.dtype.is_floating_point and bool(y.isnan().any())


def test_none_is_not_nan():
    seen = 0
    for function in functions():
        parameters = list(inspect.signature(function).parameters.values())
        needed = [p for p in parameters if p.default is p.empty and p.kind in (0, 1)]
        for place in range(len(needed)):
            if len(needed) > 3:
                break
            try:
                found = function(*[None if i == place else X for i in range(len(needed))])
            except Exception:
                seen += 1
                continue
            assert not has_nan(found), function
    assert seen > 150
    for kind in (wf.float32, wf.bfloat16, wf.int64):
        with pytest.raises(WeftError):
            kind(None)
    for call in (wf.scalar_tensor, wf.set_grad_enabled, wf.set_default_dtype):
        with pytest.raises(WeftError):
            call(None)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wf.nn.functional.log_softmax(wf.tensor(2.0), dim=1), "from -1 to 0, got 1"),
        (lambda: wf.unravel_index(wf.tensor([1]), (0,)), "a shape with elements"),
        (lambda: wnp.take(wnp.arange(4), [1.5]), "take: expected indices of integers"),
        (lambda: wnp.take_along_axis(wnp.ones(3), wnp.ones(3)), "expected indices of integers"),
        (lambda: wnp.digitize([1.0], [4, 1, -2, 3]), "bins that increase or decrease"),
        (lambda: wnp.linalg.multi_dot([wnp.ones((2, 2, 2))] * 3), r"got ranks \[3, 3, 3\]"),
        (lambda: wnp.power(wnp.array(2), wnp.array([1, -1])), "no negative powers of integers"),
        (lambda: wf.amax(X, 1, keepdim=True, keepdims=False), "amax: expected keepdim or keepdims"),
        (lambda: wf.var(X, keepdim=True, keepdims=False), "var: expected keepdim or keepdims"),
        (lambda: wf.nn.functional.mse_loss(X, X, size_average={}), "size_average of True or False"),
        (lambda: wf.nn.L1Loss(reduce="no")(X, X), "reduce of True or False"),
        (lambda: wf.fft.ifft(X, norm={}), "norm backward, ortho or forward"),
        (lambda: wnp.fft.fft(X, norm=""), "norm backward, ortho or forward"),
        (lambda: wf.linalg.svd(X, driver={}), "expected no driver"),
        (lambda: wf.ones(2, requires_grad=None), "requires_grad: expected True or False, got None"),
        (lambda: wf.ones(2).requires_grad_("yes"), "requires_grad: expected True or False"),
        (lambda: wf.quantile(wf.ones(0), 0.5), r"at least one element, got shape \(0,\)"),
        (lambda: wf.triu(wf.ones(3)), r"triu: expected a matrix, got shape \(3,\)"),
        (lambda: wf.bernoulli(wf.tensor([2.0])).tolist(), "^bernoulli: expected probabilities"),
    ],
)
def test_what_peers_refuse(call, said):
    with pytest.raises(WeftError, match=said):
        call()


@pytest.mark.parametrize("name", ["arccos", "positive", "fix", "lt", "absolute"])
def test_second_names_are_given_in_messages(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) takes"):
        getattr(X, name)(1, 2, 3)


def test_what_numpy_answers():
    given = np.array([-2, -1, 1, 3]), np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(wnp.reciprocal(wnp.asarray(given[0])), np.reciprocal(given[0]))
    for k in (-1, 0, 1):
        np.testing.assert_array_equal(wnp.triu(wnp.ones(3), k), np.triu(np.ones(3), k))
        np.testing.assert_array_equal(wnp.tril(wnp.ones(3), k), np.tril(np.ones(3), k))
    y, x = given[1], np.cumsum(given[1] ** 2, 1)
    for at, places in ((1, x), (1, x[0, :, 0]), (-1, x), (0, x)):
        found = wnp.trapezoid(wnp.asarray(y), x=wnp.asarray(places), axis=at)
        np.testing.assert_allclose(found, np.trapezoid(y, places, axis=at))
    for bins in ([1, 2, 2, 5], [5, 2, 2, 1]):
        for right in (False, True):
            values = [0, 1, 1.5, 2, 5, 6]
            found = wnp.digitize(wnp.asarray(values), wnp.asarray(bins), right=right)
            np.testing.assert_array_equal(found, np.digitize(values, bins, right=right))
    assert math.isnan(float(wnp.median(wnp.asarray([]))))
    filled = wf.zeros(2, 2, dtype=wf.float64).fill_diagonal_(wf.tensor(3.0))
    assert filled.tolist() == [[3.0, 0.0], [0.0, 3.0]]
