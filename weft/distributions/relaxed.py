"""Differentiable numbers near 0 and 1, and near one-hot vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.categorical import OfCategorical
from weft.distributions.count import FromProbability
from weft.distributions.transformed_distribution import TransformedDistribution
from weft.distributions.transforms import ExpTransform, SigmoidTransform
from weft.distributions.utils import broadcast_all, clamp_probs

__all__ = [
    "ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]  # fmt: skip


class LogitRelaxedBernoulli(FromProbability):
    """The log odds of relaxed Bernoulli numbers (Maddison et al., 2017)."""

    support, has_rsample = constraints.real, True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (self.temperature,) = broadcast_all(temperature)
        self._take(validate_args, probs=probs, logits=logits)

    def _draw(self, shape: Any) -> Any:
        u = clamp_probs(wf.rand(shape, dtype=self._param.dtype))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def _log_prob(self, value: Any) -> Any:
        rest = self.logits - value * self.temperature
        return self.temperature.log() + rest - 2 * wf.softplus(rest)


class ExpRelaxedCategorical(OfCategorical):
    """The logarithms of relaxed one-hot vectors (Maddison et al., 2017)."""

    support, has_rsample = constraints.real_vector, True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(probs, logits, validate_args)

    def _draw(self, shape: Any) -> Any:
        noise = draw.gumbel(shape, self._param)
        return wf.log_softmax((self.logits + noise) / self.temperature, -1)

    def _log_prob(self, value: Any) -> Any:
        n = self._event_shape[0]
        scores = wf.log_softmax(self.logits - value * self.temperature, -1).sum(-1)
        return scores + math.lgamma(n) + (n - 1) * self.temperature.log()


class _Relaxed(TransformedDistribution):
    has_rsample = True
    base: ClassVar[Any]
    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        kind, transform = self.base
        base = kind(temperature, probs, logits, validate_args)
        super().__init__(base, transform(), validate_args)


class RelaxedBernoulli(_Relaxed):
    """Numbers near 0 and 1, the nearer the lower the `temperature`."""

    arg_constraints: ClassVar[Any] = FromProbability.arg_constraints
    support = constraints.unit_interval
    base = (LogitRelaxedBernoulli, SigmoidTransform)


class RelaxedOneHotCategorical(_Relaxed):
    """Shares near one-hot vectors, the nearer the lower the `temperature`."""

    arg_constraints: ClassVar[Any] = OfCategorical.arg_constraints
    support = constraints.simplex
    base = (ExpRelaxedCategorical, ExpTransform)
