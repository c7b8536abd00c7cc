"""Made by `python -m tools.stubs`."""

from typing import Any
from weft.eager.tensor.tensor import Tensor

def polygamma(n: int, x: Any, *, out: Any = ...) -> Tensor:
    """The `n`-th derivative of `digamma`."""

def log_softmax(x: Any, dim: Any = ..., dtype: Any = ..., *, axis: Any = ..., out: Any = ...) -> Tensor:
    """The logarithm of `softmax`, accurate even where that is tiny."""

def logsumexp(x: Any, dim: Any = ..., keepdim: bool = ..., *, axis: Any = ..., keepdims: bool | None = ..., out: Any = ...) -> Tensor:
    """`log(sum(exp(x)))` over `dim`, without overflow."""

def softmax(x: Any, dim: Any = ..., dtype: Any = ..., *, axis: Any = ..., out: Any = ...) -> Tensor:
    """`exp(x)` divided by its sum along `dim`."""

def expm1(x: Any, *, out: Any = ...) -> Tensor:
    """`exp(x) - 1`, accurate near 0.

    >>> wf.expm1(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """

def log1p(x: Any, *, out: Any = ...) -> Tensor:
    """`log(1 + x)`, accurate near 0.

    >>> wf.log1p(wf.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """

def expit(x: Any, *, out: Any = ...) -> Tensor:
    """The logistic function: `1 / (1 + exp(-x))`.

    >>> wf.sigmoid(wf.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

def erf(x: Any, *, out: Any = ...) -> Tensor:
    """The error function: the integral of `2 / sqrt(pi) * exp(-t * t)` from 0 to `x`.

    >>> wf.erf(wf.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5205])
    """

def erfc(x: Any, *, out: Any = ...) -> Tensor:
    """`1 - erf(x)`, accurate where that is tiny.

    >>> wf.erfc(wf.tensor([0.0, 2.0]))
    tensor([1.0000, 0.0047])
    """

def erfinv(x: Any, *, out: Any = ...) -> Tensor:
    """The inverse of `erf`.

    >>> wf.erfinv(wf.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """

def round(x: Any, *, decimals: int = ..., out: Any = ...) -> Tensor:
    """Round to a number of decimals; halves round to even."""

def gammaln(x: Any, *, out: Any = ...) -> Tensor:
    """The logarithm of the absolute value of the gamma function.

    >>> wf.lgamma(wf.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """

def digamma(x: Any, *, out: Any = ...) -> Tensor:
    """The derivative of `lgamma`.

    >>> wf.digamma(wf.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """

def psi(x: Any, *, out: Any = ...) -> Tensor:
    """The derivative of `lgamma`.

    >>> wf.digamma(wf.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """

def ndtr(x: Any, *, out: Any = ...) -> Tensor:
    """The normal cumulative distribution function, accurate in both tails."""

def log_ndtr(x: Any, *, out: Any = ...) -> Tensor:
    """The logarithm of `ndtr`, accurate near 0 and 1."""

def xlog1py(x: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`x * log1p(y)`, and 0 where `x` is 0, unless `y` is NaN."""

def exp2(x: Any, *, out: Any = ...) -> Tensor:
    """2 to the power of each element.

    >>> wf.exp2(wf.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """

def xlogy(x: Any, other: Any, *, out: Any = ...) -> Tensor:
    """`x * log(y)`, and 0 where `x` is 0, unless `y` is NaN.

    >>> wf.xlogy(wf.tensor([0.0, 2.0]), wf.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """

def entr(x: Any, *, out: Any = ...) -> Tensor:
    """`-x * log(x)`; 0 at 0, where its derivative is infinite, and minus infinity below."""

def logit(x: Any, eps: float | None = ..., *, out: Any = ...) -> Tensor:
    """`log(x / (1 - x))`; `eps` clamps `x` to [eps, 1 - eps] first."""

def sinc(x: Any, *, out: Any = ...) -> Tensor:
    """`sin(pi x) / (pi x)`; 1 at 0 with derivatives of every order; 0 at other integers.

    >>> wf.sinc(wf.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """

def i0(x: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    >>> wf.i0(wf.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """

def modified_bessel_i0(x: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    >>> wf.i0(wf.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """

def i1(x: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def modified_bessel_i1(x: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def i0e(x: Any, *, out: Any = ...) -> Tensor:
    """`i0(x) * exp(-abs(x))`."""

def i1e(x: Any, *, out: Any = ...) -> Tensor:
    """`i1(x) * exp(-abs(x))`."""

def bessel_j0(input: Any, *, out: Any = ...) -> Tensor:
    """The Bessel function of the first kind of order 0."""

def bessel_j1(input: Any, *, out: Any = ...) -> Tensor:
    """The Bessel function of the first kind of order 1."""

def bessel_y0(input: Any, *, out: Any = ...) -> Tensor:
    """The Bessel function of the second kind of order 0."""

def bessel_y1(input: Any, *, out: Any = ...) -> Tensor:
    """The Bessel function of the second kind of order 1."""

def gammainc(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The distribution function of the gamma distribution of shape a, at `x`."""

def igamma(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """The distribution function of the gamma distribution of shape a, at `x`."""

def gammaincc(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """1 minus `gammainc`."""

def igammac(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """1 minus `gammainc`."""

def erfcx(input: Any, *, out: Any = ...) -> Tensor:
    """`exp(x * x) * erfc(x)`, without overflow."""

def modified_bessel_k0(input: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the second kind of order 0."""

def modified_bessel_k1(input: Any, *, out: Any = ...) -> Tensor:
    """The modified Bessel function of the second kind of order 1."""

def ndtri(input: Any, *, out: Any = ...) -> Tensor:
    """The inverse of `ndtr`."""

def zeta(input: Any, other: Any, *, out: Any = ...) -> Tensor:
    """Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0."""

def chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`chebyshev_polynomial_t` of degrees `n`, elementwise; no gradients flow."""

def chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`chebyshev_polynomial_u` of degrees `n`, elementwise; no gradients flow."""

def chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`chebyshev_polynomial_v` of degrees `n`, elementwise; no gradients flow."""

def chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`chebyshev_polynomial_w` of degrees `n`, elementwise; no gradients flow."""

def hermite_polynomial_h(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`hermite_polynomial_h` of degrees `n`, elementwise; no gradients flow."""

def hermite_polynomial_he(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`hermite_polynomial_he` of degrees `n`, elementwise; no gradients flow."""

def laguerre_polynomial_l(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`laguerre_polynomial_l` of degrees `n`, elementwise; no gradients flow."""

def legendre_polynomial_p(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`legendre_polynomial_p` of degrees `n`, elementwise; no gradients flow."""

def shifted_chebyshev_polynomial_t(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`shifted_chebyshev_polynomial_t` of degrees `n`, elementwise; no gradients flow."""

def shifted_chebyshev_polynomial_u(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`shifted_chebyshev_polynomial_u` of degrees `n`, elementwise; no gradients flow."""

def shifted_chebyshev_polynomial_v(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`shifted_chebyshev_polynomial_v` of degrees `n`, elementwise; no gradients flow."""

def shifted_chebyshev_polynomial_w(input: Any, n: Any, *, out: Any = ...) -> Tensor:
    """`shifted_chebyshev_polynomial_w` of degrees `n`, elementwise; no gradients flow."""

def multigammaln(input: Any, p: int, *, out: Any = ...) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions.

    Raises:
        DTypeError: `p` is less than 1.
    """

def mvlgamma(input: Any, p: int, *, out: Any = ...) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions.

    Raises:
        DTypeError: `p` is less than 1.
    """

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
    "xlog1py",
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
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "gammainc",
    "igamma",
    "gammaincc",
    "igammac",
    "erfcx",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "zeta",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "mvlgamma",
    "polygamma",
    "softmax",
]
