"""Distributions around a location."""

from __future__ import annotations

import math
from typing import Any

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.distribution import Distribution, parameter
from weft.distributions.utils import EULER, formula

__all__ = ["Cauchy", "Gumbel", "Laplace", "StudentT"]


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
