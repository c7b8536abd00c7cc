"""The base of distributions with a probability, or its log odds, as a parameter."""

from __future__ import annotations

from typing import Any

from weft.distributions import constraints
from weft.distributions.distribution import Distribution, parameter
from weft.distributions.draw import log_bernoulli_mass
from weft.distributions.utils import formula, lazy_property, logits_to_probs, probs_to_logits


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
    _log_bernoulli = formula(lambda d, x: log_bernoulli_mass(d.logits, x))
