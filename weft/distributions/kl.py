"""KL divergences.

Those of distributions of numbers are cross entropies minus the entropy: a cross entropy with `q` is
a formula of means under `p`, such as E[x] and E[log x].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import weft.eager.functions.api as wf
from weft import linalg
from weft.distributions.categorical import Categorical, OneHotCategorical
from weft.distributions.count import Bernoulli, Binomial, Geometric, Poisson
from weft.distributions.distribution import Distribution, ExponentialFamily
from weft.distributions.draw import betaln
from weft.distributions.independent import Independent
from weft.distributions.interval import Beta, ContinuousBernoulli, Dirichlet, Uniform
from weft.distributions.location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal
from weft.distributions.multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    distance,
    half_log_det,
    squared,
)
from weft.distributions.positive import Exponential, Gamma, Pareto
from weft.distributions.transformed_distribution import TransformedDistribution
from weft.distributions.utils import EULER, sum_rightmost
from weft.errors import ArgumentError, DTypeError
from weft.ops.warning import warn

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Any]
_KL: Final[dict[tuple[Any, Any], Divergence]] = {}
_FOUND: Final[dict[tuple[Any, Any], Divergence | None]] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Divergence], Divergence]:
    """A decorator of `function(p, q)`, the divergence for these classes and their subclasses.

    Raises:
        DTypeError: they are no classes of distributions.
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise DTypeError.here(f"register_kl: expected a class of distributions, got {kind!r}")

    def register(function: Divergence) -> Divergence:
        _KL[type_p, type_q] = function
        _FOUND.clear()
        return function

    return register


def _of(p: type, q: type) -> Divergence | None:
    """The most specific function for these classes."""
    fitting = [(a, b) for a, b in _KL if issubclass(p, a) and issubclass(q, b)]
    if not fitting:
        return None
    ranks = {(a, b): (p.__mro__.index(a), q.__mro__.index(b)) for a, b in fitting}
    first, second = min(fitting, key=lambda t: ranks[t]), min(fitting, key=lambda t: ranks[t][::-1])
    if _KL[first] is not _KL[second]:
        text = f"kl_divergence: ambiguous for {p.__name__} and {q.__name__}; register_kl for "
        warn(f"{text}{first[0].__name__} and {second[1].__name__}", RuntimeWarning)
    return _KL[first]


def kl_divergence(p: Any, q: Any) -> Any:
    """The mean of `p.log_prob(x) - q.log_prob(x)` for x from `p`, of shape `batch_shape`.

    Raises:
        NotImplementedError: there is no formula for these classes; register one.

    >>> import weft as wf
    >>> D = wf.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds = type(p), type(q)
    if kinds not in _FOUND:
        _FOUND[kinds] = _of(*kinds)
    found = _FOUND[kinds]
    if found is None:
        names = f"{type(p).__name__} and {type(q).__name__}"
        raise NotImplementedError(f"kl_divergence: has no formula for {names}; use register_kl")
    return found(p, q)


# Means under p


def _x_log_x_rise(low: Any, high: Any) -> Any:
    """The mean of log(x) over an interval."""
    return (wf.xlogy(high, high) - wf.xlogy(low, low)) / (high - low) - 1


_LOG: Final[dict[Any, Any]] = {  # E[log x]
    Exponential: lambda p: -p.rate.log() - EULER,
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Beta: lambda p: p.concentration1.digamma() - _total(p).digamma(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: _x_log_x_rise(p.low, p.high),
}
_LOG_REST: Final[dict[Any, Any]] = {  # E[log(1 - x)]
    Beta: lambda p: p.concentration0.digamma() - _total(p).digamma(),
    Uniform: lambda p: _x_log_x_rise(1 - p.high, 1 - p.low),
}
_LOG_EXP: Final[dict[Any, Any]] = {  # log(E[exp(-t * x)])
    Exponential: lambda p, t: -(t / p.rate).log1p(),
    Gamma: lambda p, t: -p.concentration * (t / p.rate).log1p(),
    Normal: lambda p, t: (p.scale * t) ** 2 / 2 - p.loc * t,
    Gumbel: lambda p, t: (1 + p.scale * t).lgamma() - p.loc * t,
    Uniform: lambda p, t: -p.low * t + (-(-t * (p.high - p.low)).expm1() / t).log() - _width(p),
}
_DISTANCE: Final[dict[Any, Any]] = {  # E[abs(x - m)]
    Normal: lambda p, m: _normal_distance((p.loc - m) / p.scale) * p.scale,
    Laplace: lambda p, m: (p.loc - m).abs() + p.scale * (-(p.loc - m).abs() / p.scale).exp(),
}


def _total(p: Any) -> Any:
    return p.concentration1 + p.concentration0


def _width(p: Any) -> Any:
    return (p.high - p.low).log()


def _normal_distance(z: Any) -> Any:
    return math.sqrt(2 / math.pi) * (-(z**2) / 2).exp() + z * wf.erf(z * math.sqrt(0.5))


# Cross entropies: the mean of -q.log_prob(x) under p


def _with_normal(p: Any, q: Any) -> Any:
    spread = p.variance + (p.mean - q.loc) ** 2
    return spread / (2 * q.scale**2) + q.scale.log() + 0.5 * math.log(2 * math.pi)


def _with_gamma(p: Any, q: Any) -> Any:
    a, b = q.concentration, q.rate
    return a.lgamma() - a * b.log() - (a - 1) * _LOG[_base(p, _LOG)](p) + b * p.mean


def _with_gumbel(p: Any, q: Any) -> Any:
    away = (p.mean - q.loc) / q.scale
    rest = _LOG_EXP[_base(p, _LOG_EXP)](p, 1 / q.scale) + q.loc / q.scale
    return q.scale.log() + away + rest.exp()


def _with_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    logs = _LOG[_base(p, _LOG)](p), _LOG_REST[_base(p, _LOG_REST)](p)
    return betaln(a, b) - (a - 1) * logs[0] - (b - 1) * logs[1]


def _with_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


def _with_pareto(p: Any, q: Any) -> Any:
    return (q.alpha + 1) * _LOG[_base(p, _LOG)](p) - q.alpha.log() - q.alpha * q.scale.log()


def _with_laplace(p: Any, q: Any) -> Any:
    return (2 * q.scale).log() + _DISTANCE[_base(p, _DISTANCE)](p, q.loc) / q.scale


def _base(p: Any, table: dict[Any, Any]) -> Any:
    return next(kind for kind in table if isinstance(p, kind))


_CROSS_ENTROPIES: Final[dict[Any, tuple[Any, tuple[Any, ...]]]] = {
    Normal: (
        _with_normal,
        (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    ),
    Exponential: (
        lambda p, q: q.rate * p.mean - q.rate.log(),
        (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    ),
    Gamma: (_with_gamma, (Beta, Exponential, Gamma, Pareto, Uniform)),
    Gumbel: (_with_gumbel, (Exponential, Gamma, Gumbel, Normal, Uniform)),
    Beta: (_with_beta, (Beta, Uniform)),
    ContinuousBernoulli: (_with_continuous_bernoulli, (Beta, ContinuousBernoulli, Uniform)),
    Pareto: (_with_pareto, (Pareto, Uniform)),
    Laplace: (_with_laplace, (Laplace, Normal)),
    Uniform: (lambda p, q: _width(q), (Beta, ContinuousBernoulli, Uniform)),
    Poisson: (lambda p, q: q.rate - p.mean * q.rate.log(), (Bernoulli,)),
}
_INFINITE: Final = {  # p has values where the density of q is 0
    Beta: (Pareto,), ContinuousBernoulli: (Pareto,), Poisson: (Bernoulli, Binomial),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    **dict.fromkeys(
        (Gumbel, Laplace, Normal),
        (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    ),
}  # fmt: skip


def _bounds(of: Any) -> tuple[Any, Any]:
    support = of.support
    return support.lower_bound, getattr(support, "upper_bound", math.inf)


def _divergence(cross_entropy: Divergence, p: Any, q: Any) -> Any:
    found = cross_entropy(p, q) - p.entropy()
    if not isinstance(p, Uniform | Pareto) and not isinstance(q, Uniform):
        return found
    if isinstance(q, Normal | Gumbel | Laplace):
        return found
    (low, high), (least, most) = _bounds(p), _bounds(q)
    outside = wf.as_tensor(low < least) | wf.as_tensor(high > most)
    return wf.where(outside, math.inf, found)


def _register(function: Divergence, *pairs: tuple[Any, Any]) -> None:
    for p, q in pairs:
        register_kl(p, q)(function)


for _q, (_cross_entropy, _ps) in _CROSS_ENTROPIES.items():
    _register(lambda p, q, by=_cross_entropy: _divergence(by, p, q), *[(_p, _q) for _p in _ps])
for _p, _qs in _INFINITE.items():
    _register(lambda p, q: wf.full_like(p.mean + 0 * q.mean, math.inf), *[(_p, _q) for _q in _qs])


# Others


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    def part(x: Any, y: Any, rise: Any) -> Any:
        return wf.where(x == 0, 0.0, wf.where(y == 0, math.inf, x * rise))

    ones = wf.softplus(-q.logits) - wf.softplus(-p.logits)
    zeros = wf.softplus(q.logits) - wf.softplus(p.logits)
    return part(p.probs, q.probs, ones) + part(1 - p.probs, 1 - q.probs, zeros)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("kl_divergence: expected p.total_count >= q.total_count")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return wf.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    each = wf.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return wf.where(p.probs == 0, 0.0, each).sum(-1)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    logs = a.digamma() - a.sum(-1, True).digamma()
    whole = a.sum(-1).lgamma() - b.sum(-1).lgamma()
    return whole + (b.lgamma() - a.lgamma() + (a - b) * logs).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _to_multivariate_normal(p: Any, q: Any) -> Any:
    _same_event(p, q)
    root = q._unbroadcasted_scale_tril
    spread = squared(linalg.solve_triangular(root, p.scale_tril, upper=False))
    away = distance(root, q.loc - p.loc)
    return half_log_det(root) - half_log_det(p.scale_tril) + 0.5 * (spread + away - _size(p))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank(p: Any, q: Any) -> Any:
    _same_event(p, q)
    root = p.scale_tril
    spread = squared(root / q.cov_diag.sqrt().unsqueeze(-1)) - squared(q._solved() @ root)
    away = q._distance(q.loc - p.loc)
    return 0.5 * (q._log_det() + spread + away - _size(p)) - half_log_det(root)


def _size(p: Any) -> int:
    return p.event_shape[0]


def _same_event(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        shapes = f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        raise ArgumentError.here(f"kl_divergence: expected one event_shape, got {shapes}")


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: expected equal reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: expected equal transforms and event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError("kl_divergence: has no formula for different families")
    own, other = p._natural_params, q._natural_params
    found = q._log_normalizer(*other) - p._log_normalizer(*own)
    for x, y, mean in zip(own, other, p._means(), strict=True):
        found = found - sum_rightmost((y - x) * mean, x.ndim - len(p.batch_shape))
    return found


register_kl(Geometric, Geometric)(
    lambda p, q: -p.entropy() - (-q.probs).log1p() / p.probs - q.logits
)
register_kl(Cauchy, Cauchy)(
    lambda p, q: (
        ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()
    )
)
register_kl(Poisson, Poisson)(
    lambda p, q: p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)
)
register_kl(HalfNormal, HalfNormal)(lambda p, q: _normal(p.base_dist, q.base_dist))
register_kl(OneHotCategorical, OneHotCategorical)(
    lambda p, q: _categorical(p._categorical, q._categorical)
)
