"""The error function."""

from __future__ import annotations

from weft.codegen.vecmath import coefficients as table
from weft.codegen.vecmath.exponential import exp_moderate
from weft.codegen.vecmath.vector import (
    Vec,
    absolute,
    at_most,
    fma,
    polynomial,
    select,
    vector_math,
    with_sign,
)


@vector_math
def erf(x: Vec) -> Vec:
    """Error function: x + x P(x*x) up to 1, then 1 - exp(Q(|x|)), Q a fit of log(erfc).

    Q's errors are damped by erfc <= 0.16, so a low degree is enough (the form is N. Juffa's).
    """
    a = absolute(x)
    small = fma(x, polynomial(x * x, x.pick(table.ERF)), x)
    q, limit = (table.ERFC_LOG, 4.0) if x.scalar == "float" else (table.ERFC_LOG_WIDE, 6.0)
    large = 1.0 - exp_moderate(polynomial(at_most(a, limit) - 2.0, x.pick(q)))
    return select(a < 1.0, small, with_sign(large, x))
