"""Made by `python -m tools.stubs`."""

import builtins
from typing import Any

from weft.eager.tensor.tensor import Tensor

def bessel_j0(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The Bessel function of the first kind of order 0."""
def bessel_j1(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The Bessel function of the first kind of order 1."""
def bessel_y0(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The Bessel function of the second kind of order 0."""
def bessel_y1(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The Bessel function of the second kind of order 1."""
def chebyshev_polynomial_t(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`chebyshev_polynomial_t` of degrees `n`, elementwise; no gradients flow."""
def chebyshev_polynomial_u(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`chebyshev_polynomial_u` of degrees `n`, elementwise; no gradients flow."""
def chebyshev_polynomial_v(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`chebyshev_polynomial_v` of degrees `n`, elementwise; no gradients flow."""
def chebyshev_polynomial_w(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`chebyshev_polynomial_w` of degrees `n`, elementwise; no gradients flow."""
def digamma(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The derivative of `lgamma`."""
def entr(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below."""
def erf(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The error function: the integral of `2 / sqrt(pi) * exp(-t * t)` from 0 to `x`."""
def erfc(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`1 - erf(x)`, accurate where that is tiny."""
def erfcx(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`exp(x * x) * erfc(x)`, without overflow."""
def erfinv(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The inverse of `erf`."""
def exp2(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """2 to the power of each element."""
def expit(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The logistic function: `1 / (1 + exp(-x))`."""
def expm1(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`exp(x) - 1`, accurate near 0."""
def gammainc(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The distribution function of the gamma distribution at `other`, after a."""
def gammaincc(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """1 minus `gammainc`."""
def gammaln(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
def hermite_polynomial_h(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`hermite_polynomial_h` of degrees `n`, elementwise; no gradients flow."""
def hermite_polynomial_he(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`hermite_polynomial_he` of degrees `n`, elementwise; no gradients flow."""
def i0(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def i0e(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`i0(x) * exp(-abs(x))`."""
def i1(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
def i1e(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`i1(x) * exp(-abs(x))`."""
def igamma(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The distribution function of the gamma distribution at `other`, after a."""
def igammac(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """1 minus `gammainc`."""
def laguerre_polynomial_l(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`laguerre_polynomial_l` of degrees `n`, elementwise; no gradients flow."""
def legendre_polynomial_p(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`legendre_polynomial_p` of degrees `n`, elementwise; no gradients flow."""
def log1p(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`log(1 + x)`, accurate near 0."""
def log_ndtr(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The logarithm of `ndtr`, accurate near 0 and 1."""
def log_softmax(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The logarithm of `softmax`, accurate even where that is tiny."""
def logit(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`log(x / (1 - x))`; `eps` clamps `x` to [eps, 1 - eps] first."""
def logsumexp(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`log(sum(exp(x)))` over `dim`, without overflow."""
def modified_bessel_i0(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def modified_bessel_i1(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
def modified_bessel_k0(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The modified Bessel function of the second kind of order 0."""
def modified_bessel_k1(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The modified Bessel function of the second kind of order 1."""
def multigammaln(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions."""
def mvlgamma(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions."""
def ndtr(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The normal cumulative distribution function, accurate in both tails."""
def ndtri(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The inverse of `ndtr`."""
def polygamma(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The `n`-th derivative of `digamma`."""
def psi(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """The derivative of `lgamma`."""
def round(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """Round to a number of decimals; halves round to even."""
def shifted_chebyshev_polynomial_t(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`shifted_chebyshev_polynomial_t` of degrees `n`, elementwise; no gradients flow."""
def shifted_chebyshev_polynomial_u(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`shifted_chebyshev_polynomial_u` of degrees `n`, elementwise; no gradients flow."""
def shifted_chebyshev_polynomial_v(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`shifted_chebyshev_polynomial_v` of degrees `n`, elementwise; no gradients flow."""
def shifted_chebyshev_polynomial_w(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`shifted_chebyshev_polynomial_w` of degrees `n`, elementwise; no gradients flow."""
def sinc(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`sin(pi x) / (pi x)`; 1 at 0 with derivatives of every order; 0 at other integers."""
def softmax(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`exp(x)` divided by its sum along `dim`."""
def xlog1py(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""
def xlogy(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """`x * log(y)`, and 0 where `x` is 0, unless `y` is NaN."""
def zeta(*args: Any, out: Any = ..., **options: Any) -> Tensor:
    """Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0."""

__all__ = [
    "expm1",
    "log1p",
    "expit",
    "erf",
    "erfc",
    "erfinv",
    "round",
    "gammaln",
    "digamma",
    "psi",
    "ndtr",
    "log_ndtr",
    "exp2",
    "xlogy",
    "entr",
    "logit",
    "sinc",
    "i0",
    "modified_bessel_i0",
    "i1",
    "modified_bessel_i1",
    "i0e",
    "i1e",
    "xlog1py",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "erfcx",
    "gammainc",
    "gammaincc",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "igamma",
    "igammac",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log_softmax",
    "logsumexp",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "mvlgamma",
    "ndtri",
    "polygamma",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "softmax",
    "zeta",
]
