"""Magnitudes of numbers that are distributed symmetrically about 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.location_scale import Cauchy
from weft.distributions.normal import Normal
from weft.distributions.transformed_distribution import TransformedDistribution
from weft.distributions.transforms import AbsTransform
from weft.distributions.utils import formula

__all__ = ["HalfCauchy", "HalfNormal"]


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
