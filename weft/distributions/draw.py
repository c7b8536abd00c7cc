"""Random numbers and log densities that distributions share, as functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.distributions.utils import broadcast_all
from weft.eager.functions.random.distribution import bernoulli_node
from weft.eager.functions.random.generator import next_counter
from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.elementwise import promoted
from weft.ops.loss.classification import binary_cross_entropy_with_logits
from weft.ops.random import density, distribution
from weft.ops.random.gamma import log_gamma_draw

_categorical: Final = recorded(distribution.categorical, differentiable=False)
_gumbel: Final = recorded(distribution.gumbel, differentiable=False)
_von_mises: Final = recorded(distribution.von_mises, differentiable=False)
_log_gamma: Final = recorded(log_gamma_draw)


def bernoulli(probs: Any, shape: Sequence[int]) -> Any:
    """Ones with these probabilities, otherwise zeros."""
    return bernoulli_node(next_counter(), probs, shape=tuple(shape), dtype=probs.dtype)


def categorical(logits: Any, shape: Sequence[int]) -> Any:
    """Classes, int64."""
    return _categorical(next_counter(), logits, shape=tuple(shape))


def gumbel(shape: Sequence[int], like: Any) -> Any:
    """Numbers from the standard Gumbel distribution."""
    return _gumbel(next_counter(), shape=tuple(shape), dtype=like.dtype)


def log_gamma(concentration: Any, shape: Sequence[int]) -> Any:
    """Logarithms of gamma-distributed numbers with rate 1, differentiable."""
    return _log_gamma(next_counter(), concentration, shape=tuple(shape))


def von_mises(concentration: Any, shape: Sequence[int]) -> Any:
    """Angles around 0."""
    return _von_mises(next_counter(), concentration, shape=tuple(shape))


def _promoting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of graph values as one of tensors, which are promoted to one dtype."""
    run = recorded(function)
    return lambda *xs: run(*promoted(*xs, floats=True))


log_normal_density: Final = _promoting(density.normal)
log_student_density: Final = _promoting(density.student)
log_beta_density: Final = _promoting(density.beta)
log_gamma_density: Final = _promoting(density.gamma)
log_poisson_mass: Final = _promoting(density.poisson)
log_dirichlet_density: Final = _promoting(density.dirichlet)
betaln: Final = _promoting(density.betaln)
_cross_entropy: Final = recorded(binary_cross_entropy_with_logits)


def log_bernoulli_mass(logits: Any, x: Any) -> Any:
    """`log(p)` where `x` is 1 and `log(1 - p)` where it is 0, for log odds; linear between."""
    logits, x = promoted(*broadcast_all(logits, x), floats=True)
    return -_cross_entropy(logits, x, None, None, reduction="none")
