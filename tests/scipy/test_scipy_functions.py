"""Special functions that call SciPy, where it is installed."""

import numpy as np
import pytest
import scipy.special as scipy_special

from tests.numpy.numpy_case import check_gradient, same
from weft.errors import GradientError
from weft.numpy import ones
from weft.scipy import special, stats

X = np.random.default_rng(0).uniform(0.3, 2.0, (2, 3))


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "erfcinv"])
def test_of_one(name):
    x = X / 2
    same(getattr(special, name)(x), getattr(scipy_special, name)(x))
    check_gradient(getattr(special, name), x)


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "ive", "gammainc", "gammaincc"])
def test_of_an_order(name):
    same(getattr(special, name)(1.5, X), getattr(scipy_special, name)(1.5, X))
    check_gradient(lambda x: getattr(special, name)(1.5, x), X)


def test_distribution_functions():
    same(special.betainc(1.5, 2.0, X / 3), scipy_special.betainc(1.5, 2.0, X / 3))
    check_gradient(lambda x: special.betainc(1.5, 2.0, x), X / 3)
    z = X - 1
    same(stats.t.cdf(z, 3.0), scipy_special.stdtr(3.0, z))
    check_gradient(lambda x: stats.t.logcdf(x, 3.0), z)
    same(stats.poisson.cdf(2.0, X), scipy_special.pdtr(2.0, X))
    same(stats.chi2.cdf(X, 3.0), scipy_special.chdtr(3.0, X))
    same(stats.gamma.cdf(X, 3.0), scipy_special.gammainc(3.0, X))
    same(stats.beta.cdf(X / 3, 2.0, 1.5), scipy_special.betainc(2.0, 1.5, X / 3))


def test_complex_error_functions():
    z = X + 0.5j
    same(special.erf(z), scipy_special.erf(z))
    check_gradient(special.erfc, z)


def test_orders_have_no_gradient():
    with pytest.raises(GradientError, match="jv: has a gradient by its last argument only"):
        special.jv(ones(2).requires_grad_(), X[:, :2])
