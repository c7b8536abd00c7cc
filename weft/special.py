"""Special functions under PyTorch's names; `weft.scipy.special` has SciPy's.

>>> import weft as wf
>>> wf.special.expit(wf.tensor([0.0]))
tensor([0.5000])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.eager.functions.elementwise.binary import xlogy as xlogy
from weft.eager.functions.elementwise.polynomial import polynomial
from weft.eager.functions.elementwise.unary import digamma as digamma
from weft.eager.functions.elementwise.unary import erf as erf
from weft.eager.functions.elementwise.unary import erfc as erfc
from weft.eager.functions.elementwise.unary import erfinv as erfinv
from weft.eager.functions.elementwise.unary import exp2 as exp2
from weft.eager.functions.elementwise.unary import expit as expit
from weft.eager.functions.elementwise.unary import expm1 as expm1
from weft.eager.functions.elementwise.unary import i0 as i0
from weft.eager.functions.elementwise.unary import lgamma as gammaln
from weft.eager.functions.elementwise.unary import log1p as log1p
from weft.eager.functions.elementwise.unary import logit as logit
from weft.eager.functions.elementwise.unary import polygamma as polygamma
from weft.eager.functions.elementwise.unary import round as round
from weft.eager.functions.elementwise.unary import sinc as sinc
from weft.eager.functions.out_argument import Out, with_outlet
from weft.eager.functions.reduction.reduce import log_softmax as log_softmax
from weft.eager.functions.reduction.reduce import logsumexp as logsumexp
from weft.eager.functions.reduction.reduce import softmax as softmax
from weft.eager.tensor.dispatch import kind_of, promoted, wrap
from weft.errors import DTypeError
from weft.ops.base import at_user_line
from weft.scipy import special

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma",
    "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc",
    "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "igamma", "igammac", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr",
    "log_softmax", "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "mvlgamma", "ndtr", "ndtri",
    "polygamma", "psi", "round", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

psi = digamma


def _one(function: Callable[..., Any]) -> Callable[[Any], Tensor]:
    """A function of SciPy's whose integers become PyTorch's default type."""

    def single(input: Any) -> Tensor:
        (x,) = promoted(input, floats=True)
        return function(wrap(x, kind_of(input)))

    single.__doc__ = function.__doc__
    return single


def _two(function: Callable[..., Any]) -> Callable[[Any, Any], Tensor]:
    def double(input: Any, other: Any) -> Tensor:
        like = kind_of(input, other)
        return function(*[wrap(x, like) for x in promoted(input, other, floats=True)])

    double.__doc__ = function.__doc__
    return double


bessel_j0: Final = _one(special.j0)
bessel_j1: Final = _one(special.j1)
bessel_y0: Final = _one(special.y0)
bessel_y1: Final = _one(special.y1)
entr: Final = _one(special.entr)
erfcx: Final = _one(special.erfcx)
i0e: Final = _one(special.i0e)
i1: Final = _one(special.i1)
i1e: Final = _one(special.i1e)
log_ndtr: Final = _one(special.log_ndtr)
modified_bessel_i0 = i0
modified_bessel_i1 = i1
modified_bessel_k0: Final = _one(special.k0)
modified_bessel_k1: Final = _one(special.k1)
ndtr: Final = _one(special.ndtr)
ndtri: Final = _one(special.ndtri)
gammainc: Final = _two(special.gammainc)
gammaincc: Final = _two(special.gammaincc)
igamma, igammac = gammainc, gammaincc
xlog1py: Final = _two(special.xlog1py)
zeta: Final = _two(special.zeta)


chebyshev_polynomial_t: Final = polynomial("chebyshev_polynomial_t")
chebyshev_polynomial_u: Final = polynomial("chebyshev_polynomial_u")
chebyshev_polynomial_v: Final = polynomial("chebyshev_polynomial_v")
chebyshev_polynomial_w: Final = polynomial("chebyshev_polynomial_w")
hermite_polynomial_h: Final = polynomial("hermite_polynomial_h")
hermite_polynomial_he: Final = polynomial("hermite_polynomial_he")
laguerre_polynomial_l: Final = polynomial("laguerre_polynomial_l")
legendre_polynomial_p: Final = polynomial("legendre_polynomial_p")
shifted_chebyshev_polynomial_t: Final = polynomial("chebyshev_polynomial_t", shifted=True)
shifted_chebyshev_polynomial_u: Final = polynomial("chebyshev_polynomial_u", shifted=True)
shifted_chebyshev_polynomial_v: Final = polynomial("chebyshev_polynomial_v", shifted=True)
shifted_chebyshev_polynomial_w: Final = polynomial("chebyshev_polynomial_w", shifted=True)


def multigammaln(input: Any, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions.

    Raises:
        DTypeError: no dimensions.
    """
    if p < 1:
        raise DTypeError(f"multigammaln: expected p of at least 1, got {p}{at_user_line()}")
    (x,) = promoted(input, floats=True)
    found: Any = special.multigammaln(wrap(x, kind_of(input)), p)
    return found


mvlgamma = multigammaln

_OUT: Final = {"round": Out.EXACT}
for _name in __all__:
    _rule = _OUT.get(_name, Out.SAME_KIND)
    globals()[_name] = with_outlet(globals()[_name], __name__, _name, _rule)
