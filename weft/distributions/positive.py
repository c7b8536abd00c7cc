"""Distributions of positive numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.distribution import Distribution, ExponentialFamily, parameter
from weft.distributions.transformed_distribution import TransformedDistribution
from weft.distributions.transforms import PowerTransform
from weft.distributions.utils import EULER, formula
from weft.special import gammainc

__all__ = [
    "Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "InverseGamma",
    "Pareto", "Weibull",
]  # fmt: skip


def _above(x: Any, least: float) -> Any:
    """The number where it is above another one, otherwise NaN."""
    return wf.where(x > least, x, math.nan)


class Exponential(ExponentialFamily):
    """The exponential distribution: waiting times of mean `1 / rate`."""

    rate: Any = parameter(constraints.positive)
    support, has_rsample = constraints.nonnegative, True
    mean = stddev = property(lambda self: 1 / self.rate)
    mode = property(lambda self: wf.zeros_like(self.rate))
    variance = property(lambda self: self.rate**-2)
    _log_prob = formula(lambda d, x: d.rate.log() - d.rate * x)
    _cdf = formula(lambda d, x: -(-d.rate * x).expm1())
    _icdf = formula(lambda d, p: -(-p).log1p() / d.rate)
    _entropy = formula(lambda d: 1 - d.rate.log())


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration`."""

    concentration: Any = parameter(constraints.positive)
    rate: Any = parameter(constraints.positive)
    support, has_rsample = constraints.nonnegative, True
    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate**2)
    _log_prob = formula(
        lambda d, x: draw.log_gamma_density(x * d.rate, d.concentration) + d.rate.log()
    )
    _cdf = formula(lambda d, x: gammainc(d.concentration, d.rate * x))

    def _draw(self, shape: Any) -> Any:
        found = draw.log_gamma(self.concentration, shape).exp() / self.rate
        return found.clamp(min=wf.finfo(found.dtype).tiny)

    def _entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The sum of squares of `df` normally distributed numbers."""

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}
    df = property(lambda self: self.concentration * 2)

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=0.5 * df, rate=0.5)


class InverseGamma(TransformedDistribution):
    """The reciprocal of a number from the gamma distribution."""

    arg_constraints: ClassVar[Any] = Gamma.arg_constraints
    support = constraints.positive
    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))
    mean = property(lambda d: d.rate / (d.concentration.clamp(min=1) - 1))
    variance = property(lambda d: d.mean**2 / (d.concentration.clamp(min=2) - 2))

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base: Any = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    def _entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each divided by its degrees of freedom."""

    df1: Any = parameter(constraints.positive)
    df2: Any = parameter(constraints.positive)
    support, has_rsample = constraints.positive, True
    mean = property(lambda d: d.df2 / (_above(d.df2, 2) - 2))
    mode = property(lambda d: (_above(d.df1, 2) - 2) / d.df1 * d.df2 / (d.df2 + 2))
    variance = property(
        lambda d: 2 * d.mean**2 * (d.df1 + d.df2 - 2) / (d.df1 * (_above(d.df2, 4) - 4))
    )

    def _draw(self, shape: Any) -> Any:
        logs = [draw.log_gamma(df / 2, shape) for df in (self.df1, self.df2)]
        found = (logs[0] - logs[1]).exp() * (self.df2 / self.df1)
        return found.clamp(min=wf.finfo(found.dtype).tiny)

    def _log_prob(self, value: Any) -> Any:
        half1, half2, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        power = half1 * ratio.log() + (half1 - 1) * value.log()
        return power - (half1 + half2) * (ratio * value).log1p() - draw.betaln(half1, half2)


class Weibull(Distribution):
    """`scale` times a number from the exponential distribution to the power 1 / concentration."""

    scale: Any = parameter(constraints.positive)
    concentration: Any = parameter(constraints.positive)
    support, has_rsample = constraints.positive, True
    mean = property(lambda self: self.scale * (1 + 1 / self.concentration).lgamma().exp())
    mode = property(
        lambda d: d.scale * ((d.concentration - 1) / d.concentration) ** (1 / d.concentration)
    )
    variance = property(lambda d: d.scale**2 * (1 + 2 / d.concentration).lgamma().exp() - d.mean**2)
    _cdf = formula(lambda d, x: -(-((x / d.scale) ** d.concentration)).expm1())
    _icdf = formula(lambda d, p: d.scale * (-(-p).log1p()) ** (1 / d.concentration))
    _entropy = formula(
        lambda d: EULER * (1 - 1 / d.concentration) + (d.scale / d.concentration).log() + 1
    )

    def _log_prob(self, value: Any) -> Any:
        k, z = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * z.log() - z**k


class Pareto(Distribution):
    """`scale` times the exponential of an exponentially distributed number of rate `alpha`."""

    scale: Any = parameter(constraints.positive)
    alpha: Any = parameter(constraints.positive)
    has_rsample = True
    mode = property(lambda self: self.scale)
    mean = property(lambda d: d.alpha * d.scale / (d.alpha.clamp(min=1) - 1))
    variance = property(lambda d: d.mean**2 / (d.alpha * (d.alpha.clamp(min=2) - 2)))
    _log_prob = formula(lambda d, x: (d.alpha / x).log() + d.alpha * (d.scale / x).log())
    _cdf = formula(lambda d, x: -(d.alpha * (d.scale / x).log()).expm1())
    _icdf = formula(lambda d, p: d.scale * (-(-p).log1p() / d.alpha).exp())
    _entropy = formula(lambda d: (d.scale / d.alpha).log() + 1 + 1 / d.alpha)
    support = constraints.dependent_property(
        lambda self: constraints.greater_than_eq(self.scale), is_discrete=False, event_dim=0
    )


class GeneralizedPareto(Distribution):
    """Excesses over a high threshold `loc`; exponential for a `concentration` of 0."""

    loc: Any = parameter(constraints.real)
    scale: Any = parameter(constraints.positive)
    concentration: Any = parameter(constraints.real)
    has_rsample = True
    mode = property(lambda self: self.loc)
    mean = property(lambda d: d.loc + d.scale / _above(1 - d.concentration, 0))
    variance = property(
        lambda d: (d.scale / (1 - d.concentration)) ** 2 / _above(1 - 2 * d.concentration, 0)
    )
    _zero = property(lambda self: self.concentration.abs() < 1e-8)
    _safe = property(lambda self: wf.where(self._zero, 1.0, self.concentration))
    _cdf = formula(lambda d, x: -d.log_survival_function(x).expm1())
    _entropy = formula(lambda d: d.scale.log() + d.concentration + 1)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `loc` on, for a negative concentration up to an end."""
        negative = self.concentration < 0
        end = self.loc - self.scale / wf.where(negative, self.concentration, -1.0)
        return constraints.interval(self.loc, wf.where(negative, end, math.inf))

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of larger values."""
        z = (self._valid(value) - self.loc) / self.scale
        return -wf.where(self._zero, z, (self._safe * z).log1p() / self._safe)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def _log_prob(self, value: Any) -> Any:
        z = (value - self.loc) / self.scale
        fall = (1 / self._safe + 1) * (self._safe * z).log1p()
        return -self.scale.log() - wf.where(self._zero, z, fall)

    def _icdf(self, p: Any) -> Any:
        log = (-p).log1p()
        grown = (-self._safe * log).expm1() / self._safe
        return self.loc + self.scale * wf.where(self._zero, -log, grown)
