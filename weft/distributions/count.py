"""Distributions of counts."""

from __future__ import annotations

import math
from typing import Any

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.distribution import Distribution, ExponentialFamily, parameter, require
from weft.distributions.utils import formula, lazy_property, logits_to_probs, probs_to_logits
from weft.special import xlog1py

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class Probabilities(Distribution):
    """`probs` and `logits`, of which one is given and the other computed when it is needed."""

    is_binary = True
    _param = property(lambda self: self.probs if "probs" in self._given else self.logits)
    param_shape = property(lambda self: self._param.shape)

    @lazy_property
    def logits(self) -> Any:
        """The log odds; of several classes, log probabilities."""
        return probs_to_logits(self.probs, self.is_binary)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, self.is_binary)


class FromProbability(Probabilities):
    """A distribution with one probability as parameter."""

    probs: Any = parameter(constraints.unit_interval, default=None)
    logits: Any = parameter(constraints.real, default=None)
    _log_bernoulli = formula(lambda d, x: draw.log_bernoulli_mass(d.logits, x))


class Bernoulli(FromProbability, ExponentialFamily):
    """1 with the probability `probs`, or the log odds `logits`, otherwise 0.

    >>> import weft as wf
    >>> wf.distributions.Bernoulli(0.25).log_prob(wf.tensor(1.0)).exp()
    tensor(0.2500)
    """

    support, has_enumerate_support = constraints.boolean, True
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    _draw = formula(lambda d, shape: draw.bernoulli(d.probs, shape))
    _log_prob = formula(lambda d, x: d._log_bernoulli(x))
    _entropy = formula(lambda d: -d._log_bernoulli(d.probs))
    _values = formula(lambda d: wf.arange(2, dtype=d._param.dtype))

    @property
    def mode(self) -> Any:
        """NaN for equal probabilities."""
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return wf.where(self.probs == 0.5, math.nan, likelier)


class Geometric(FromProbability):
    """How many trials with the probability `probs` fail until one succeeds."""

    support = constraints.nonnegative_integer
    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: wf.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)
    _log_prob = formula(lambda d, x: xlog1py(x, -d.probs) + d.probs.log())
    _entropy = formula(lambda d: -d._log_bernoulli(d.probs) / d.probs)

    def _sound(self, validate_args: bool | None, **given: Any) -> dict[str, Any]:
        found = super()._sound(validate_args, **given)
        if self._validate_args and "probs" in found:
            text = "Geometric: expected probs > 0"
            found["probs"] = require(found["probs"], constraints.positive, text)
        return found

    def _draw(self, shape: Any) -> Any:
        u = wf.rand(shape, dtype=self.probs.dtype)
        return ((-u).log1p() / (-self.probs).log1p()).floor()


class Binomial(Probabilities):
    """How many of `total_count` trials with the probability `probs` succeed."""

    total_count: Any = parameter(constraints.nonnegative_integer, default=1)
    probs: Any = parameter(constraints.unit_interval, default=None)
    logits: Any = parameter(constraints.real, default=None)
    has_enumerate_support = True
    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self.total_count),
        is_discrete=True, event_dim=0,
    )  # fmt: skip
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda d: ((d.total_count + 1) * d.probs).floor().minimum(d.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def _draw(self, shape: Any) -> Any:
        return wf.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def _log_prob(self, value: Any) -> Any:
        n, rest = self.total_count, self.total_count - value
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (rest + 1).lgamma()
        return ways + value * self.logits - n * wf.softplus(self.logits)

    def _values(self) -> Any:
        most = int(self.total_count.max())
        if most != int(self.total_count.min()):
            raise NotImplementedError("Binomial: expected one total_count to enumerate its values")
        return wf.arange(most + 1, dtype=self._param.dtype)

    def _entropy(self) -> Any:
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)


class NegativeBinomial(Probabilities):
    """How many trials with the probability `probs` succeed until `total_count` have failed."""

    total_count: Any = parameter(constraints.greater_than_eq(0))
    probs: Any = parameter(constraints.half_open_interval(0.0, 1.0), default=None)
    logits: Any = parameter(constraints.real, default=None)
    support = constraints.nonnegative_integer
    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda d: ((d.total_count - 1) * d.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean * (1 + self.logits.exp()))

    def _draw(self, shape: Any) -> Any:
        return wf.poisson((draw.log_gamma(self.total_count, shape) + self.logits).exp())

    def _log_prob(self, value: Any) -> Any:
        n, x = self.total_count, value
        ways = (n + x).lgamma() - (1 + x).lgamma() - n.lgamma()
        chance = -n * wf.softplus(self.logits) - x * wf.softplus(-self.logits)
        return chance + wf.where(n + x == 0, 0.0, ways)


class Poisson(ExponentialFamily):
    """The number of events with mean `rate`."""

    rate: Any = parameter(constraints.nonnegative)
    support = constraints.nonnegative_integer
    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    _draw = formula(lambda d, shape: wf.poisson(d.rate.expand(shape)))
    _log_prob = formula(lambda d, x: draw.log_poisson_mass(x, d.rate))
