"""Densities and distribution functions, also differentiable in their parameters."""

from __future__ import annotations

from weft.ops.refusal import guard as _guard
from weft.scipy.stats import beta as beta
from weft.scipy.stats import chi2 as chi2
from weft.scipy.stats import dirichlet as dirichlet
from weft.scipy.stats import gamma as gamma
from weft.scipy.stats import multivariate_normal as multivariate_normal
from weft.scipy.stats import norm as norm
from weft.scipy.stats import poisson as poisson
from weft.scipy.stats import t as t

for _distribution in (beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t):
    _guard(vars(_distribution))
