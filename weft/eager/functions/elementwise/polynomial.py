"""The orthogonal polynomials of `torch.special`, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.documentation import named
from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.dispatch import kind_of, recorded
from weft.eager.tensor.elementwise import promoted
from weft.errors import OutOfRangeError
from weft.ir.node import Value
from weft.ir.shape import broadcast, known
from weft.ops.boundary import host
from weft.ops.boundary.routine import routine

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

First = Callable[[Any], Any]
Step = Callable[[int, Any, Any, Any], Any]  # degree k + 1 from k, x and degrees k and k - 1

# Abramowitz and Stegun, table 22.7. Degree 0 is 1 for all; each entry has degree 1 and the
# recurrence.
CHEBYSHEV: Final[Step] = lambda k, x, p, q: 2 * x * p - q  # noqa: E731
RECURRENCES: Final[Mapping[str, tuple[First, Step]]] = {
    "chebyshev_polynomial_t": (lambda x: x, CHEBYSHEV),
    "chebyshev_polynomial_u": (lambda x: 2 * x, CHEBYSHEV),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, CHEBYSHEV),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, CHEBYSHEV),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    ),
}

HIGHEST: Final = 100_000
"""The recurrences take one step per degree."""


def polynomial(name: str, shifted: bool = False) -> Callable[[Any, Any], Tensor]:
    """A function of arguments and degrees, which broadcast; 0 for negative degrees.

    Args:
        shifted: evaluate at `2 * x - 1` instead of x.

    Raises:
        OutOfRangeError: when computed, a degree above `HIGHEST`.
    """

    title = f"shifted_{name}" if shifted else name

    @named(title, f"`{title}` of degrees `n`, elementwise; no gradients flow.")
    def function(input: Any, n: Any) -> Tensor:
        return _evaluated.on(
            kind_of(input, n), *promoted(input, n, floats=True), name=name, shifted=shifted
        )

    return function


@recorded(differentiable=False)
def _evaluated(x: Value, n: Value, *, name: str, shifted: bool) -> Value:
    shape = known(broadcast(known(x.shape), known(n.shape)))
    return host.call(_values.of(name, shifted), x, n, types_of=[(x.dtype, shape)], title=name)[0]


@routine
def _values(name: str, shifted: bool, x: Array, n: Array) -> Array:
    first, step = RECURRENCES[name]
    degrees = np.trunc(n).astype(np.int64)
    highest = int(degrees.max(initial=0))
    if highest > HIGHEST:
        raise OutOfRangeError(f"expected degrees of at most {HIGHEST}, got {highest}")
    wide = x.astype(np.float64)
    wide = 2 * wide - 1 if shifted else wide
    before, last = np.ones_like(wide), first(wide)
    found = np.where(degrees == 0, 1.0, np.where(degrees == 1, last, 0.0))
    with np.errstate(all="ignore"):  # an overflow at degrees that are not asked for does not matter
        for k in range(1, highest):
            before, last = last, step(k, wide, last, before)
            found = np.where(degrees == k + 1, last, found)
        return found.astype(x.dtype)
