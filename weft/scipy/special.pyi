"""Made by `python -m tools.stubs`."""

import builtins
from typing import Any

from weft.numpy.array import ndarray

def beta(*args: Any, **options: Any) -> ndarray:
    """`gamma(x) * gamma(y) / gamma(x + y)`."""
def betainc(*args: Any, **options: Any) -> Any:
    """The distribution function of `beta` at `x`, after a and b."""
def betaln(*args: Any, **options: Any) -> ndarray:
    """The logarithm of the absolute value of the beta function."""
def digamma(*args: Any, **options: Any) -> ndarray:
    """The derivative of `lgamma`."""
def entr(*args: Any, **options: Any) -> ndarray:
    """`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below."""
def erf(*args: Any, **options: Any) -> ndarray:
    """The error function; complex numbers need SciPy."""
def erfc(*args: Any, **options: Any) -> ndarray:
    """1 minus the error function, accurate where that is tiny; complex numbers need SciPy."""
def erfcinv(*args: Any, **options: Any) -> Any:
    """The inverse of `erfc`."""
def erfcx(*args: Any, **options: Any) -> Any:
    """`exp(x * x) * erfc(x)`, without overflow."""
def erfinv(*args: Any, **options: Any) -> ndarray:
    """The inverse of `erf`."""
def expit(*args: Any, **options: Any) -> ndarray:
    """The logistic function: `1 / (1 + exp(-x))`."""
def gamma(*args: Any, **options: Any) -> ndarray:
    """The gamma function: `(x - 1)!` for integers."""
def gammainc(*args: Any, **options: Any) -> Any:
    """The distribution function of `gamma` at `x`, after a."""
def gammaincc(*args: Any, **options: Any) -> Any:
    """1 minus `gammainc`."""
def gammaln(*args: Any, **options: Any) -> ndarray:
    """The logarithm of the absolute value of the gamma function."""
def gammasgn(*args: Any, **options: Any) -> ndarray:
    """The sign of `gamma`."""
def i0(*args: Any, **options: Any) -> ndarray:
    """The modified Bessel function of the first kind of order 0."""
def i0e(*args: Any, **options: Any) -> ndarray:
    """`i0(x) * exp(-abs(x))`."""
def i1(*args: Any, **options: Any) -> ndarray:
    """The modified Bessel function of the first kind of order 1."""
def i1e(*args: Any, **options: Any) -> ndarray:
    """`i1(x) * exp(-abs(x))`."""
def iv(*args: Any, **options: Any) -> Any:
    """The modified Bessel function of the first kind of a real order."""
def ive(*args: Any, **options: Any) -> Any:
    """`iv(v, x) * exp(-abs(x))`."""
def j0(*args: Any, **options: Any) -> Any:
    """The Bessel function of the first kind of order 0."""
def j1(*args: Any, **options: Any) -> Any:
    """The Bessel function of the first kind of order 1."""
def jn(*args: Any, **options: Any) -> Any:
    """The Bessel function of the first kind of a real order."""
def jv(*args: Any, **options: Any) -> Any:
    """The Bessel function of the first kind of a real order."""
def k0(*args: Any, **options: Any) -> Any:
    """The modified Bessel function of the second kind of order 0."""
def k1(*args: Any, **options: Any) -> Any:
    """The modified Bessel function of the second kind of order 1."""
def log_expit(*args: Any, **options: Any) -> ndarray:
    """`log(sigmoid(x))`, which stays finite for every finite `x`."""
def log_ndtr(*args: Any, **options: Any) -> ndarray:
    """The logarithm of `ndtr`, accurate near 0 and 1."""
def log_softmax(*args: Any, **options: Any) -> ndarray:
    """The logarithm of `softmax`, accurate where that is tiny."""
def loggamma(*args: Any, **options: Any) -> ndarray:
    """The logarithm of the absolute value of the gamma function."""
def logit(*args: Any, **options: Any) -> ndarray:
    """`log(x / (1 - x))`, the inverse of `expit`."""
def logsumexp(*args: Any, **options: Any) -> ndarray:
    """`log(sum(b * exp(a)))` over axes, without overflow."""
def multigammaln(*args: Any, **options: Any) -> ndarray:
    """The logarithm of the multivariate gamma function of `d` dimensions."""
def ndtr(*args: Any, **options: Any) -> ndarray:
    """The normal cumulative distribution function, accurate in both tails."""
def ndtri(*args: Any, **options: Any) -> Any:
    """The inverse of `ndtr`."""
def polygamma(*args: Any, **options: Any) -> ndarray:
    """The `n`-th derivative of `digamma`."""
def psi(*args: Any, **options: Any) -> ndarray:
    """The derivative of `lgamma`."""
def rgamma(*args: Any, **options: Any) -> ndarray:
    """1 divided by `gamma`."""
def softmax(*args: Any, **options: Any) -> ndarray:
    """`exp(x)` divided by its sum over axes (all by default)."""
def xlog1py(*args: Any, **options: Any) -> ndarray:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""
def xlogy(*args: Any, **options: Any) -> ndarray:
    """`x * log(y)`, and 0 where `x` is 0."""
def y0(*args: Any, **options: Any) -> Any:
    """The Bessel function of the second kind of order 0."""
def y1(*args: Any, **options: Any) -> Any:
    """The Bessel function of the second kind of order 1."""
def yn(*args: Any, **options: Any) -> Any:
    """The Bessel function of the second kind of a real order."""
def yv(*args: Any, **options: Any) -> Any:
    """The Bessel function of the second kind of a real order."""
def zeta(*args: Any, **options: Any) -> Any:
    """Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0."""

__all__ = [
    "expit",
    "erfinv",
    "log_expit",
    "gammaln",
    "loggamma",
    "digamma",
    "psi",
    "betaln",
    "ndtr",
    "log_ndtr",
    "entr",
    "i0",
    "i1",
    "i0e",
    "i1e",
    "gammasgn",
    "gamma",
    "rgamma",
    "beta",
    "xlog1py",
    "betainc",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "gammainc",
    "gammaincc",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k1",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtri",
    "polygamma",
    "softmax",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "yv",
    "zeta",
]
