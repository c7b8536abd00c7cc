"""Distributions around a location, and functions of their numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.distribution import Distribution, ExponentialFamily, parameter
from weft.distributions.transformed_distribution import TransformedDistribution
from weft.distributions.transforms import AbsTransform, ExpTransform, StickBreakingTransform
from weft.distributions.utils import EULER, formula
from weft.special import ndtr

__all__ = [
    "Cauchy", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "LogNormal", "LogisticNormal",
    "Normal", "StudentT",
]  # fmt: skip


class _LocationScale(Distribution):
    support, has_rsample = constraints.real, True
    loc: Any
    scale: Any
    mode = property(lambda self: self.loc)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale


class Cauchy(_LocationScale):
    """The Cauchy distribution with median `loc` and half width `scale`."""

    loc: Any = parameter(constraints.real)
    scale: Any = parameter(constraints.positive)
    mean = property(lambda self: wf.full_like(self.loc, math.nan))
    variance = property(lambda self: wf.full_like(self.loc, math.inf))
    _log_prob = formula(lambda d, x: -math.log(math.pi) - d.scale.log() - (d._z(x) ** 2).log1p())
    _cdf = formula(lambda d, x: d._z(x).atan() / math.pi + 0.5)
    _icdf = formula(lambda d, p: d.loc + d.scale * (math.pi * (p - 0.5)).tan())
    _entropy = formula(lambda d: math.log(4 * math.pi) + d.scale.log())


class Laplace(_LocationScale):
    """Exponentially distributed distances, with mean `scale`, to both sides of `loc`."""

    loc: Any = parameter(constraints.real)
    scale: Any = parameter(constraints.positive)
    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale**2)
    _log_prob = formula(lambda d, x: -(2 * d.scale).log() - d._z(x).abs())
    _cdf = formula(lambda d, x: 0.5 - 0.5 * d._z(x).sign() * (-d._z(x).abs()).expm1())
    _icdf = formula(
        lambda d, p: d.loc - d.scale * (p - 0.5).sign() * (-2 * (p - 0.5).abs()).log1p()
    )
    _entropy = formula(lambda d: 1 + (2 * d.scale).log())


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> import weft as wf
    >>> wf.distributions.Normal(0.0, 1.0).log_prob(wf.tensor(0.0))
    tensor(-0.9189)
    """

    loc: Any = parameter(constraints.real)
    scale: Any = parameter(constraints.positive)
    support, has_rsample = constraints.real, True
    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)
    _draw = formula(lambda d, shape: d.loc + wf.randn(shape, dtype=d.loc.dtype) * d.scale)
    _log_prob = formula(lambda d, x: draw.log_normal_density(x - d.loc, d.scale))
    _cdf = formula(lambda d, x: ndtr((x - d.loc) / d.scale))
    _icdf = formula(lambda d, p: d.loc + d.scale * wf.erfinv(2 * p - 1) * math.sqrt(2))
    _entropy = formula(lambda d: d.scale.log() + 0.5 * math.log(2 * math.pi * math.e))


class LogNormal(TransformedDistribution):
    """Numbers whose logarithm is normally distributed with mean `loc` and deviation `scale`."""

    arg_constraints: ClassVar[Any] = Normal.arg_constraints
    support = constraints.positive
    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda d: (d.scale**2).expm1() * (2 * d.loc + d.scale**2).exp())
    _entropy = formula(lambda d: d.base_dist.entropy() + d.loc)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(
            Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args
        )


class LogisticNormal(TransformedDistribution):
    """Shares, from numbers that are normally distributed, by breaking a stick."""

    arg_constraints: ClassVar[Any] = Normal.arg_constraints
    support = constraints.simplex
    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)


class _Half(TransformedDistribution):
    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    whole: ClassVar[Any]
    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: wf.zeros_like(self.scale))
    _cdf = formula(lambda d, x: 2 * d.base_dist.cdf(x) - 1)
    _icdf = formula(lambda d, p: d.base_dist.icdf((p + 1) / 2))
    _entropy = formula(lambda d: d.base_dist.entropy() - math.log(2))

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self.whole(0, scale, validate_args), AbsTransform(), validate_args)

    def _log_prob(self, value: Any) -> Any:
        found = self.base_dist.log_prob(value) + math.log(2)
        return wf.where(value >= 0, found, -math.inf)


class HalfNormal(_Half):
    """The magnitude of a normally distributed number with mean 0 and deviation `scale`."""

    whole = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The magnitude of a number from the Cauchy distribution around 0."""

    whole = Cauchy
    mean = variance = property(lambda self: wf.full_like(self.scale, math.inf))


class Gumbel(_LocationScale):
    """The distribution of the largest of many numbers, with mode `loc`."""

    loc: Any = parameter(constraints.real)
    scale: Any = parameter(constraints.positive)
    mean = property(lambda self: self.loc + self.scale * EULER)
    variance = property(lambda self: math.pi**2 / 6 * self.scale**2)
    _log_prob = formula(lambda d, x: -d._z(x) - (-d._z(x)).exp() - d.scale.log())
    _cdf = formula(lambda d, x: (-(-d._z(x)).exp()).exp())
    _icdf = formula(lambda d, p: d.loc - d.scale * (-p.log()).log())
    _entropy = formula(lambda d: d.scale.log() + (1 + EULER))
    _draw = formula(lambda d, shape: d.loc + d.scale * draw.gumbel(shape, d.loc))


class StudentT(_LocationScale):
    """Student's t distribution with `df` degrees of freedom."""

    df: Any = parameter(constraints.positive)
    loc: Any = parameter(constraints.real, default=0.0)
    scale: Any = parameter(constraints.positive, default=1.0)
    mean = property(lambda self: wf.where(self.df > 1, self.loc, math.nan))
    _log_prob = formula(lambda d, x: draw.log_student_density(x - d.loc, d.df, d.scale))

    @property
    def variance(self) -> Any:
        """Infinite for `df` up to 2, NaN up to 1."""
        df = wf.where(self.df > 2, self.df, 3.0)
        rest = wf.where(self.df > 1, math.inf, math.nan)
        return wf.where(self.df > 2, self.scale**2 * df / (df - 2), rest)

    def _draw(self, shape: Any) -> Any:
        half = self.df / 2
        root = (0.5 * (half.log() - draw.log_gamma(half, shape))).exp()
        return self.loc + self.scale * wf.randn(shape, dtype=half.dtype) * root

    def _entropy(self) -> Any:
        half, more = self.df / 2, (self.df + 1) / 2
        rise = more * (more.digamma() - half.digamma())
        return (
            self.scale.log() + rise + self.df.log() / 2 + draw.betaln(half, wf.full_like(half, 0.5))
        )
