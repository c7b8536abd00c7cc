"""Distributions of numbers of an interval, of shares and of angles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.count import FromProbability
from weft.distributions.distribution import Distribution, ExponentialFamily, parameter, require
from weft.distributions.utils import EULER, clamp_probs, formula
from weft.errors import ArgumentError
from weft.special import expit, i0e, i1e

__all__ = ["Beta", "ContinuousBernoulli", "Dirichlet", "Kumaraswamy", "Uniform", "VonMises"]


class Uniform(Distribution):
    """Uniform numbers from `low`, to below `high`."""

    low: Any = parameter(constraints.dependent(is_discrete=False, event_dim=0))
    high: Any = parameter(constraints.dependent(is_discrete=False, event_dim=0))
    has_rsample = True
    mean = property(lambda self: (self.low + self.high) / 2)
    mode = property(lambda self: wf.full_like(self.low, math.nan))
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)
    support = constraints.dependent_property(
        lambda self: constraints.interval(self.low, self.high), is_discrete=False, event_dim=0
    )
    _cdf = formula(lambda d, x: ((x - d.low) / (d.high - d.low)).clamp(0, 1))
    _icdf = formula(lambda d, p: d.low + (d.high - d.low) * p)
    _entropy = formula(lambda d: (d.high - d.low).log())
    _draw = formula(lambda d, shape: d._icdf(wf.rand(shape, dtype=d.low.dtype)))

    def _sound(self, validate_args: bool | None, **given: Any) -> dict[str, Any]:
        found = super()._sound(validate_args, **given)
        if self._validate_args:
            above, text = constraints.greater_than(found["low"]), "Uniform: expected low < high"
            found["high"] = require(found["high"], above, text)
        return found

    def _log_prob(self, value: Any) -> Any:
        inside = (value >= self.low) & (value < self.high)
        return wf.where(inside, -(self.high - self.low).log(), -math.inf)


class Beta(ExponentialFamily):
    """The beta distribution: densities grow as `x ** (concentration1 - 1)` from 0."""

    concentration1: Any = parameter(constraints.positive)
    concentration0: Any = parameter(constraints.positive)
    support, has_rsample = constraints.unit_interval, True
    _log_prob = formula(lambda d, x: draw.log_beta_density(x, d.concentration1, d.concentration0))
    mean = property(lambda d: d.concentration1 / (d.concentration1 + d.concentration0))
    mode = property(lambda self: self._shares().mode[..., 0])
    variance = property(lambda self: self._shares().variance[..., 0])
    _entropy = formula(lambda d: d._shares().entropy())

    def _shares(self) -> Any:
        both = wf.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    def _draw(self, shape: Any) -> Any:
        ones, zeros = self.concentration1, self.concentration0
        return expit(draw.log_gamma(ones, shape) - draw.log_gamma(zeros, shape))


class Dirichlet(ExponentialFamily):
    """Shares that sum to 1, with concentrations (..., shares).

    >>> import weft as wf
    >>> wf.distributions.Dirichlet(wf.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support, has_rsample = constraints.simplex, True
    mean = property(lambda d: d.concentration / d.concentration.sum(-1, True))
    _log_prob = formula(lambda d, x: draw.log_dirichlet_density(x, d.concentration))
    _draw = formula(lambda d, shape: wf.softmax(draw.log_gamma(d.concentration, shape), -1))

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentError.here("Dirichlet: expected a vector or rows of some")
        self.concentration: Any = self._sound(validate_args, concentration=concentration)[
            "concentration"
        ]
        self._shaped(concentration.shape[:-1], concentration.shape[-1:])

    @property
    def mode(self) -> Any:
        """The likeliest shares; all for the largest concentration if none is above 1."""
        above = (self.concentration - 1).clamp(min=0)
        largest = self.concentration.argmax(-1, keepdim=True)
        alone = (wf.arange(above.shape[-1]) == largest).to(above.dtype)
        flat = (self.concentration < 1).all(-1, keepdim=True)
        return wf.where(flat, alone, above / above.sum(-1, True))

    @property
    def variance(self) -> Any:
        """The variance of each share."""
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def _entropy(self) -> Any:
        a = self.concentration
        total, k = a.sum(-1), a.shape[-1]
        whole = a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma()
        return whole - ((a - 1) * a.digamma()).sum(-1)


class Kumaraswamy(Distribution):
    """Like the beta distribution, with a simple distribution function."""

    concentration1: Any = parameter(constraints.positive)
    concentration0: Any = parameter(constraints.positive)
    support, has_rsample = constraints.unit_interval, True
    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2)
    _cdf = formula(lambda d, x: -(d.concentration0 * (-(x**d.concentration1)).log1p()).expm1())
    _icdf = formula(
        lambda d, p: (-((-p).log1p() / d.concentration0).expm1()) ** (1 / d.concentration1)
    )

    def _moment(self, n: int) -> Any:
        b = self.concentration0
        return b * draw.betaln(1 + n / self.concentration1, b).exp()

    @property
    def mode(self) -> Any:
        """NaN if a concentration is below 1."""
        a, b = self.concentration1, self.concentration0
        return wf.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** (1 / a))

    def _log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return (a * b).log() + (a - 1) * value.log() + (b - 1) * (-(value**a)).log1p()

    def _entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + EULER) - (a * b).log()


class ContinuousBernoulli(FromProbability):
    """Numbers of the unit interval with densities that grow exponentially.

    Source: Loaiza-Ganem and Cunningham, "The continuous Bernoulli", 2019. Between `lims`,
    probabilities near 1/2, its moments are computed by their Taylor series.
    """

    support, has_rsample = constraints.unit_interval, True

    def __init__(
        self, probs: Any = None, logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._lims = lims
        self._take(validate_args, probs=probs, logits=logits)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    def _near(self, series: Any, formula: Any) -> Any:
        """A series in the distance from 1/2 if that is small, otherwise a formula."""
        near = (self.probs > self._lims[0]) & (self.probs <= self._lims[1])
        p = wf.where(near, self._lims[0], self.probs)
        return wf.where(near, series(self.probs - 0.5), formula(p, (-p).log1p() - p.log()))

    @property
    def mean(self) -> Any:
        """The mean."""
        return self._near(
            lambda x: 0.5 + (1 / 3 + 16 / 45 * x**2) * x, lambda p, l: p / (2 * p - 1) + 1 / l
        )

    @property
    def variance(self) -> Any:
        """The variance."""
        return self._near(
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x**2) * x**2,
            lambda p, l: p * (p - 1) / (1 - 2 * p) ** 2 + 1 / l**2,
        )

    def _log_norm(self) -> Any:
        """The logarithm of the factor beside `p**x * (1 - p)**(1 - x)`."""
        return self._near(
            lambda x: math.log(2) + (4 / 3 + 104 / 45 * x**2) * x**2,
            lambda p, l: l.abs().log() - (1 - 2 * p).abs().log(),
        )

    def _log_prob(self, value: Any) -> Any:
        return self._log_bernoulli(value) + self._log_norm()

    def _cdf(self, value: Any) -> Any:
        found = self._near(
            lambda x: value,
            lambda p, l: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1),
        )
        return wf.where(value <= 0, 0.0, wf.where(value >= 1, 1.0, found))

    def _icdf(self, u: Any) -> Any:
        return self._near(
            lambda x: u, lambda p, l: ((-p).log1p() - (-p + u * (2 * p - 1)).log1p()) / l
        )

    def _entropy(self) -> Any:
        return -self.mean * self.logits - (-self.probs).log1p() - self._log_norm()


class VonMises(Distribution):
    """Angles around `loc`; `variance` is the circular one, and there is no `rsample`."""

    loc: Any = parameter(constraints.real)
    concentration: Any = parameter(constraints.positive)
    support = constraints.real
    mean = mode = property(lambda self: self.loc)
    variance = property(lambda d: 1 - i1e(d.concentration) / i0e(d.concentration))

    def _log_prob(self, value: Any) -> Any:
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - i0e(k).log()

    def _draw(self, shape: Any) -> Any:
        turned = draw.von_mises(self.concentration, shape) + self.loc + math.pi
        return turned % (2 * math.pi) - math.pi
