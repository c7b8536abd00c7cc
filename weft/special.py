"""Special functions under PyTorch's names; `weft.scipy.special` has SciPy's.

>>> import weft as wf
>>> wf.special.expit(wf.tensor([0.0]))
tensor([0.5000])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.elementwise.declared import function_of
from weft.eager.functions.elementwise.hosted import run_hosted
from weft.eager.functions.elementwise.polynomial import polynomial
from weft.eager.functions.elementwise.unary import polygamma as polygamma
from weft.eager.functions.out_argument import Out, with_outlet
from weft.eager.functions.reduction.reduce import log_softmax as log_softmax
from weft.eager.functions.reduction.reduce import logsumexp as logsumexp
from weft.eager.functions.reduction.reduce import softmax as softmax
from weft.eager.tensor.dispatch import kind_of, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.errors import DTypeError
from weft.ir.node import at_user_line
from weft.ops.declaration import exports

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

_OF_FACES = exports("special")
globals().update({name: function_of(source) for name, source in _OF_FACES.items()})
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_OF_FACES,
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "erfcx",
    "gammainc", "gammaincc", "hermite_polynomial_h", "hermite_polynomial_he", "igamma", "igammac",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log_softmax", "logsumexp",
    "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "mvlgamma", "ndtri", "polygamma",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "softmax", "zeta",
]  # fmt: skip


def _hosted(name: str, doc: str) -> Callable[[Any], Tensor]:
    """A function of `scipy.special` of one argument."""

    def single(input: Any) -> Tensor:
        return run_hosted(name, _tensors(input), name)

    single.__doc__ = doc
    return single


def _hosted_of_two(name: str, doc: str) -> Callable[[Any, Any], Tensor]:
    def double(input: Any, other: Any) -> Tensor:
        return run_hosted(name, _tensors(input, other), name)

    double.__doc__ = doc
    return double


def _tensors(*xs: Any) -> list[Any]:
    like = kind_of(*xs)
    return [wrap(x, like) for x in promoted(*xs, floats=True)]


bessel_j0: Final = _hosted("j0", "The Bessel function of the first kind of order 0.")
bessel_j1: Final = _hosted("j1", "The Bessel function of the first kind of order 1.")
bessel_y0: Final = _hosted("y0", "The Bessel function of the second kind of order 0.")
bessel_y1: Final = _hosted("y1", "The Bessel function of the second kind of order 1.")
erfcx: Final = _hosted("erfcx", "`exp(x * x) * erfc(x)`, without overflow.")
modified_bessel_k0: Final = _hosted(
    "k0", "The modified Bessel function of the second kind of order 0."
)
modified_bessel_k1: Final = _hosted(
    "k1", "The modified Bessel function of the second kind of order 1."
)
ndtri: Final = _hosted("ndtri", "The inverse of `ndtr`.")
gammainc: Final = _hosted_of_two(
    "gammainc", "The distribution function of the gamma distribution at `other`, after a."
)
gammaincc: Final = _hosted_of_two("gammaincc", "1 minus `gammainc`.")
igamma, igammac = gammainc, gammaincc
zeta: Final = _hosted_of_two(
    "zeta", "Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0."
)


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


_multigammaln = recorded(ops.multigammaln)


def multigammaln(input: Any, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions.

    Raises:
        DTypeError: `p` is less than 1.
    """
    if p < 1:
        raise DTypeError(f"multigammaln: expected p of at least 1, got {p}{at_user_line()}")
    (x,) = promoted(input, floats=True)
    return _multigammaln.on(kind_of(input), x, d=int(p))


mvlgamma = multigammaln

for _name in __all__:
    _rule = _OF_FACES[_name].face.out if _name in _OF_FACES else Out.SAME_KIND
    globals()[_name] = with_outlet(globals()[_name], __name__, _name, _rule)
