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
from weft.numpy.convert import alike, array_like, floats, operands
from weft.numpy.statistical import axes_within
from weft.ops.declaration import sources
from weft.ops.declaration.face import arity
from weft.ops.reduction import exponential_sum
from weft.ops.refusal import guard
from weft.ops.special.hosted import HOSTED
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


_FUNCTIONS: dict[str, Callable[..., ndarray]] = {
    **{name: _of_arrays(source) for name, source in sources("scipy").items()},
    **{name: hosted(own) for own in HOSTED for name in HOSTED[own].face.names("scipy")},
}
globals().update(_FUNCTIONS)
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_FUNCTIONS, "erf", "erfc", "log_softmax", "logit", "logsumexp", "multigammaln", "polygamma",
    "softmax", "xlogy",
]  # fmt: skip


# Gamma functions


def polygamma(n: Any, x: Any, /) -> ndarray:
    """The `n`-th derivative of `digamma`.

    Raises:
        DTypeError: `n` is no integer.
    """
    order = n.item() if hasattr(n, "item") else n
    if order != int(order):
        raise DTypeError.here(f"polygamma: expected an integer n, got {order}")
    result: Any = unary.polygamma(int(order), floats(x)) if order else _FUNCTIONS["digamma"](x)
    return result


_multigammaln = recorded(ops.multigammaln)


def multigammaln(a: Any, d: int) -> ndarray:
    """The logarithm of the multivariate gamma function of `d` dimensions."""
    return _multigammaln(floats(a), d=int(d))


# Error functions

_erf: Final = _of_arrays(ops.erf)
_erfc: Final = _of_arrays(ops.erfc)
_complex_erf: Final = hosted("erf")
_complex_erfc: Final = hosted("erfc")


def erf(x: Any, /) -> ndarray:
    """The error function; complex numbers need SciPy."""
    x = floats(x)
    return _complex_erf(x) if x.dtype.is_complex else _erf(x)


def erfc(x: Any, /) -> ndarray:
    """1 minus the error function, accurate where that is tiny; complex numbers need SciPy."""
    x = floats(x)
    return _complex_erfc(x) if x.dtype.is_complex else _erfc(x)


# Logistic functions and entropies


def logit(x: Any, /) -> ndarray:
    """`log(x / (1 - x))`, the inverse of `expit`."""
    result: Any = unary.logit(array_like(x))
    return result


def xlogy(x: Any, y: Any, /) -> ndarray:
    """`x * log(y)`, and 0 where `x` is 0."""
    a, b = operands(x, y)
    result: Any = declared.xlogy(a, b)
    return result


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
        result: Any = reduce.softmax(x, axis)
        return result
    return _softmax.on(x, x, axes=axes_within("softmax", axis, x.ndim))


def log_softmax(x: Any, axis: Any = None) -> ndarray:
    """The logarithm of `softmax`, accurate where that is tiny."""
    x = floats(x)
    return _log_softmax.on(x, x, axes=axes_within("log_softmax", axis, x.ndim))


guard(globals())
