"""Special functions: gamma, beta, error and Bessel functions, logistic functions, logsumexp."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.elementwise import declared, unary
from weft.eager.functions.elementwise.from_op import of_floats
from weft.eager.functions.reduction import reduce
from weft.eager.tensor.dispatch import recorded
from weft.errors import DTypeError
from weft.ir.node import at_user_line
from weft.numpy.convert import alike, array_like, floats, operands
from weft.numpy.statistical import axes_within
from weft.ops.declaration import exports
from weft.ops.declaration.face import arity
from weft.ops.reduction import exponential_sum
from weft.ops.refusal import guard
from weft.scipy.hosted import function as hosted

if TYPE_CHECKING:
    from weft.numpy.array import ndarray


@functools.cache
def _of_arrays(source: Any) -> Callable[..., ndarray]:
    """An operation or formula with a face as a function of what can be floating-point arrays."""
    run: Any = of_floats("special", source)

    def single(x: Any, /) -> ndarray:
        return run(floats(x))

    def double(x: Any, y: Any, /) -> ndarray:
        return run(*alike(floats(x), floats(y)))

    function = single if arity(source) == 1 else double
    function.__doc__ = source.face.doc
    return function


_OF_FACES = {name: _of_arrays(source) for name, source in exports("scipy").items()}
globals().update(_OF_FACES)
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_OF_FACES,
    "betainc", "erf", "erfc", "erfcinv", "erfcx", "gammainc", "gammaincc", "iv", "ive", "j0",
    "j1", "jn", "jv", "k0", "k1", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtri",
    "polygamma", "softmax", "xlogy", "y0", "y1", "yn", "yv", "zeta",
]  # fmt: skip


# Gamma functions


def polygamma(n: Any, x: Any, /) -> ndarray:
    """The `n`-th derivative of `digamma`.

    Raises:
        DTypeError: `n` is no integer.
    """
    order = n.item() if hasattr(n, "item") else n
    if order != int(order):
        raise DTypeError(f"polygamma: expected an integer n, got {order}{at_user_line()}")
    found: Any = unary.polygamma(int(order), floats(x)) if order else _OF_FACES["digamma"](x)
    return found


_multigammaln = recorded(ops.multigammaln)


def multigammaln(a: Any, d: int) -> ndarray:
    """The logarithm of the multivariate gamma function of `d` dimensions."""
    return _multigammaln(floats(a), d=int(d))


betainc: Final = hosted("betainc", "The distribution function of `beta` at `x`, after a and b.")
gammainc: Final = hosted("gammainc", "The distribution function of `gamma` at `x`, after a.")
gammaincc: Final = hosted("gammaincc", "1 minus `gammainc`.")
zeta: Final = hosted("zeta", "Hurwitz' zeta function: the sum of `(k + q) ** -x` for k from 0.")

# Error functions

_erf: Final = _of_arrays(ops.erf)
_erfc: Final = _of_arrays(ops.erfc)
_complex_erf: Final = hosted("erf", "The error function of complex numbers.")
_complex_erfc: Final = hosted("erfc", "1 minus the error function of complex numbers.")


def erf(x: Any, /) -> ndarray:
    """The error function; complex numbers need SciPy."""
    x = floats(x)
    return _complex_erf(x) if x.dtype.is_complex else _erf(x)


def erfc(x: Any, /) -> ndarray:
    """1 minus the error function, accurate where that is tiny; complex numbers need SciPy."""
    x = floats(x)
    return _complex_erfc(x) if x.dtype.is_complex else _erfc(x)


erfcinv: Final = hosted("erfcinv", "The inverse of `erfc`.")
erfcx: Final = hosted("erfcx", "`exp(x * x) * erfc(x)`, without overflow.")
ndtri: Final = hosted("ndtri", "The inverse of `ndtr`.")

# Bessel functions

iv: Final = hosted("iv", "The modified Bessel function of the first kind of a real order.")
ive: Final = hosted("ive", "`iv(v, x) * exp(-abs(x))`.")
j0: Final = hosted("j0", "The Bessel function of the first kind of order 0.")
j1: Final = hosted("j1", "The Bessel function of the first kind of order 1.")
jv: Final = hosted("jv", "The Bessel function of the first kind of a real order.")
y0: Final = hosted("y0", "The Bessel function of the second kind of order 0.")
y1: Final = hosted("y1", "The Bessel function of the second kind of order 1.")
yv: Final = hosted("yv", "The Bessel function of the second kind of a real order.")
k0: Final = hosted("k0", "The modified Bessel function of the second kind of order 0.")
k1: Final = hosted("k1", "The modified Bessel function of the second kind of order 1.")
jn, yn = jv, yv

# Logistic functions and entropies


def logit(x: Any, /) -> ndarray:
    """`log(x / (1 - x))`, the inverse of `expit`."""
    found: Any = unary.logit(array_like(x))
    return found


def xlogy(x: Any, y: Any, /) -> ndarray:
    """`x * log(y)`, and 0 where `x` is 0."""
    a, b = operands(x, y)
    found: Any = declared.xlogy(a, b)
    return found


# Sums of exponentials


_logsumexp = recorded(exponential_sum.logsumexp)
_softmax = recorded(exponential_sum.softmax)
_log_softmax = recorded(exponential_sum.log_softmax)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> ndarray:
    """`log(sum(b * exp(a)))` over axes, without overflow."""
    x = floats(a)
    if b is not None:
        x, b = alike(x, floats(b))
    axes = axes_within("logsumexp", axis, x.ndim)
    return _logsumexp.on(x, x, b, axes=axes, keepdims=keepdims)


def softmax(x: Any, axis: Any = None) -> ndarray:
    """`exp(x)` divided by its sum over axes (all by default)."""
    x = floats(x)
    if isinstance(axis, int):
        found: Any = reduce.softmax(x, axis)
        return found
    return _softmax.on(x, x, axes=axes_within("softmax", axis, x.ndim))


def log_softmax(x: Any, axis: Any = None) -> ndarray:
    """The logarithm of `softmax`, accurate where that is tiny."""
    x = floats(x)
    return _log_softmax.on(x, x, axes=axes_within("log_softmax", axis, x.ndim))


guard(globals())
