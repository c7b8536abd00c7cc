"""Made by `python -m tools.package_stubs`."""

from weft.jax.scipy.stats import bernoulli as bernoulli
from weft.jax.scipy.stats import beta as beta
from weft.jax.scipy.stats import cauchy as cauchy
from weft.jax.scipy.stats import chi2 as chi2
from weft.jax.scipy.stats import dirichlet as dirichlet
from weft.jax.scipy.stats import expon as expon
from weft.jax.scipy.stats import gamma as gamma
from weft.jax.scipy.stats import laplace as laplace
from weft.jax.scipy.stats import logistic as logistic
from weft.jax.scipy.stats import multivariate_normal as multivariate_normal
from weft.jax.scipy.stats import norm as norm
from weft.jax.scipy.stats import poisson as poisson
from weft.jax.scipy.stats import t as t
from weft.jax.scipy.stats import uniform as uniform
