"""Normal, log-normal and logistic-normal distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.distribution import parameter
from weft.distributions.draw import log_normal_density
from weft.distributions.exp_family import ExponentialFamily
from weft.distributions.transformed_distribution import TransformedDistribution
from weft.distributions.transforms import ExpTransform, StickBreakingTransform
from weft.distributions.utils import formula
from weft.special import ndtr

__all__ = ["LogNormal", "LogisticNormal", "Normal"]


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
    _log_prob = formula(lambda d, x: log_normal_density(x - d.loc, d.scale))
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
