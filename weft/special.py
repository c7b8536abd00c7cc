"""Special functions under PyTorch's names; `weft.scipy.special` has SciPy's.

>>> import weft as wf
>>> wf.special.expit(wf.tensor([0.0]))
tensor([0.5000])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.elementwise.declared import function_of
from weft.eager.functions.elementwise.hosted import run_hosted
from weft.eager.functions.elementwise.polynomial import RECURRENCES, polynomial
from weft.eager.functions.elementwise.unary import polygamma as polygamma
from weft.eager.functions.out_argument import Out, with_outlet
from weft.eager.functions.reduction.reduce import log_softmax as log_softmax
from weft.eager.functions.reduction.reduce import logsumexp as logsumexp
from weft.eager.functions.reduction.reduce import softmax as softmax
from weft.eager.tensor.dispatch import kind_of, recorded, wrap
from weft.eager.tensor.elementwise import promoted
from weft.errors import DTypeError
from weft.ops.declaration import sources
from weft.ops.special.hosted import HOSTED

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


@functools.cache
def _hosted(name: str) -> Callable[..., Tensor]:
    """A function of `scipy.special`."""

    def single(input: Any) -> Tensor:
        return run_hosted(name, _tensors(input), name)

    def double(input: Any, other: Any) -> Tensor:
        return run_hosted(name, _tensors(input, other), name)

    function = single if len(HOSTED[name].slopes) == 1 else double
    function.__doc__ = HOSTED[name].face.doc
    return function


def _tensors(*xs: Any) -> list[Any]:
    like = kind_of(*xs)
    return [wrap(x, like) for x in promoted(*xs, floats=True)]


_SOURCES = sources("special")
_FUNCTIONS: dict[str, Any] = {
    **{name: function_of(source) for name, source in _SOURCES.items()},
    **{name: _hosted(own) for own in HOSTED for name in HOSTED[own].face.names("special")},
    **{name: polynomial(name) for name in RECURRENCES},
    **{f"shifted_{n}": polynomial(n, shifted=True) for n in RECURRENCES if n.startswith("cheby")},
}
globals().update(_FUNCTIONS)
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_FUNCTIONS, "log_softmax", "logsumexp", "multigammaln", "mvlgamma", "polygamma", "softmax",
]  # fmt: skip


_multigammaln = recorded(ops.multigammaln)


def multigammaln(input: Any, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions.

    Raises:
        DTypeError: `p` is less than 1.
    """
    if p < 1:
        raise DTypeError.here(f"multigammaln: expected p of at least 1, got {p}")
    (x,) = promoted(input, floats=True)
    return _multigammaln.on(kind_of(input), x, d=int(p))


mvlgamma = multigammaln

for _name in __all__:
    _rule = _SOURCES[_name].face.out if _name in _SOURCES else Out.SAME_KIND
    globals()[_name] = with_outlet(globals()[_name], __name__, _name, _rule)
