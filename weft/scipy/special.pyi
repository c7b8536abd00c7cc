"""Made by `python -m tools.stubs`."""

from typing import Any
from weft.numpy.array import ndarray

def expit(x: Any, /) -> ndarray:
    """The logistic function: `1 / (1 + exp(-x))`."""

def erfinv(x: Any, /) -> ndarray:
    """The inverse of `erf`."""

def log_expit(x: Any, /) -> ndarray:
    """`log(sigmoid(x))`, which stays finite for every finite `x`."""

def gammaln(x: Any, /) -> ndarray:
    """The logarithm of the absolute value of the gamma function."""

def loggamma(x: Any, /) -> ndarray:
    """The logarithm of the absolute value of the gamma function."""

def digamma(x: Any, /) -> ndarray:
    """The derivative of `lgamma`."""

def psi(x: Any, /) -> ndarray:
    """The derivative of `lgamma`."""

def betaln(x: Any, y: Any, /) -> ndarray:
    """The logarithm of the absolute value of the beta function."""

def ndtr(x: Any, /) -> ndarray:
    """The normal cumulative distribution function, accurate in both tails."""

def log_ndtr(x: Any, /) -> ndarray:
    """The logarithm of `ndtr`, accurate near 0 and 1."""

def gammasgn(x: Any, /) -> ndarray:
    """The sign of `gamma`."""

def gamma(x: Any, /) -> ndarray:
    """The gamma function: `(x - 1)!` for integers."""

def rgamma(x: Any, /) -> ndarray:
    """1 divided by `gamma`."""

def beta(x: Any, y: Any, /) -> ndarray:
    """`gamma(x) * gamma(y) / gamma(x + y)`."""

def xlog1py(x: Any, y: Any, /) -> ndarray:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""

def factorial(x: Any, /) -> ndarray:
    """The factorial: the gamma function of `n + 1`, and 0 for negative numbers."""

def comb(x: Any, y: Any, /) -> ndarray:
    """The number of ways to choose `k` of `n`."""

def poch(x: Any, y: Any, /) -> ndarray:
    """The rising factorial: `gamma(z + m) / gamma(z)`."""

def rel_entr(x: Any, y: Any, /) -> ndarray:
    """`x * log(x / y)`, the terms of the relative entropy; 0 where `x` is 0."""

def kl_div(x: Any, y: Any, /) -> ndarray:
    """`x * log(x / y) - x + y`, and `y` where `x` is 0."""

def boxcox(x: Any, y: Any, /) -> ndarray:
    """`(x ** lmbda - 1) / lmbda`, which is `log(x)` for 0."""

def boxcox1p(x: Any, y: Any, /) -> ndarray:
    """`boxcox` of `1 + x`."""

def entr(x: Any, /) -> ndarray:
    """`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below."""

def i0(x: Any, /) -> ndarray:
    """The modified Bessel function of the first kind of order 0."""

def i1(x: Any, /) -> ndarray:
    """The modified Bessel function of the first kind of order 1."""

def i0e(x: Any, /) -> ndarray:
    """`i0(x) * exp(-abs(x))`."""

def i1e(x: Any, /) -> ndarray:
    """`i1(x) * exp(-abs(x))`."""

def j0(*xs: Any) -> Any:
    """The Bessel function of the first kind of order 0."""

def j1(*xs: Any) -> Any:
    """The Bessel function of the first kind of order 1."""

def jv(*xs: Any) -> Any:
    """The Bessel function of the first kind of a real order."""

def jn(*xs: Any) -> Any:
    """The Bessel function of the first kind of a real order."""

def y0(*xs: Any) -> Any:
    """The Bessel function of the second kind of order 0."""

def y1(*xs: Any) -> Any:
    """The Bessel function of the second kind of order 1."""

def yv(*xs: Any) -> Any:
    """The Bessel function of the second kind of a real order."""

def yn(*xs: Any) -> Any:
    """The Bessel function of the second kind of a real order."""

def iv(*xs: Any) -> Any:
    """The modified Bessel function of the first kind of a real order."""

def ive(*xs: Any) -> Any:
    """`iv(v, x) * exp(-abs(x))`."""

def betainc(*xs: Any) -> Any:
    """The distribution function of `beta` at `x`, after a and b."""

def gammainc(*xs: Any) -> Any:
    """The distribution function of the gamma distribution of shape a, at `x`."""

def gammaincc(*xs: Any) -> Any:
    """1 minus `gammainc`."""

def erfcinv(*xs: Any) -> Any:
    """The inverse of `erfc`."""

def erfcx(*xs: Any) -> Any:
    """`exp(x * x) * erfc(x)`, without overflow."""

def k0(*xs: Any) -> Any:
    """The modified Bessel function of the second kind of order 0."""

def k1(*xs: Any) -> Any:
    """The modified Bessel function of the second kind of order 1."""

def ndtri(*xs: Any) -> Any:
    """The inverse of `ndtr`."""

def zeta(*xs: Any) -> Any:
    """Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0."""

def expi(*xs: Any) -> Any:
    """The exponential integral Ei."""

def exp1(*xs: Any) -> Any:
    """The exponential integral E1."""

def expn(*xs: Any) -> Any:
    """The exponential integral of an integer order, which is the first."""

def dawsn(*xs: Any) -> Any:
    """Dawson's integral."""

def spence(*xs: Any) -> Any:
    """The dilogarithm of `1 - x`, as SciPy counts."""

def hyp1f1(*xs: Any) -> Any:
    """The confluent hypergeometric function of a and b at `x`."""

def hyp2f1(*xs: Any) -> Any:
    """The hypergeometric function of a, b and c at `x`."""

def owens_t(*xs: Any) -> Any:
    """Owen's T function of h and a."""

def polygamma(n: Any, x: Any, /) -> ndarray:
    """The `n`-th derivative of `digamma`.

    Raises:
        DTypeError: `n` is no integer.
    """

def multigammaln(a: Any, d: int) -> ndarray:
    """The logarithm of the multivariate gamma function of `d` dimensions."""

def erf(x: Any, /) -> ndarray:
    """The error function; complex numbers need SciPy."""

def erfc(x: Any, /) -> ndarray:
    """1 minus the error function, accurate where that is tiny; complex numbers need SciPy."""

def logit(x: Any, /) -> ndarray:
    """`log(x / (1 - x))`, the inverse of `expit`."""

def xlogy(x: Any, y: Any, /) -> ndarray:
    """`x * log(y)`, and 0 where `x` is 0."""

def logsumexp(a: Any, axis: Any = ..., b: Any = ..., keepdims: bool = ...) -> ndarray:
    """`log(sum(b * exp(a)))` over axes, without overflow."""

def softmax(x: Any, axis: Any = ...) -> ndarray:
    """`exp(x)` divided by its sum over axes (all by default)."""

def log_softmax(x: Any, axis: Any = ...) -> ndarray:
    """The logarithm of `softmax`, accurate where that is tiny."""

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
    "gammasgn",
    "gamma",
    "rgamma",
    "beta",
    "xlog1py",
    "factorial",
    "comb",
    "poch",
    "rel_entr",
    "kl_div",
    "boxcox",
    "boxcox1p",
    "entr",
    "i0",
    "i1",
    "i0e",
    "i1e",
    "j0",
    "j1",
    "jv",
    "jn",
    "y0",
    "y1",
    "yv",
    "yn",
    "iv",
    "ive",
    "betainc",
    "gammainc",
    "gammaincc",
    "erfcinv",
    "erfcx",
    "k0",
    "k1",
    "ndtri",
    "zeta",
    "expi",
    "exp1",
    "expn",
    "dawsn",
    "spence",
    "hyp1f1",
    "hyp2f1",
    "owens_t",
    "erf",
    "erfc",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "softmax",
    "xlogy",
]
