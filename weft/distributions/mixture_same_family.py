"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.categorical import Categorical
from weft.distributions.distribution import Distribution
from weft.distributions.utils import formula
from weft.errors import ArgumentError

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: components lie along the last batch axis, weights are a categorical distribution.

    >>> import weft as wf
    >>> D = wf.distributions
    >>> weights = D.Categorical(wf.tensor([1.0, 3.0]))
    >>> D.MixtureSameFamily(weights, D.Normal(wf.tensor([0.0, 4.0]), 1.0)).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {}
    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    support = constraints.dependent_property(
        lambda d: constraints.MixtureSameFamilyConstraint(d.component_distribution.support)
    )
    _axis = property(lambda self: -1 - len(self._event_shape))
    mean = property(lambda d: (d._weights() * d.component_distribution.mean).sum(d._axis))
    _cdf = formula(
        lambda d, x: (d.component_distribution.cdf(x.unsqueeze(d._axis)) * d._weights()).sum(-1)
    )

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        mixture, parts = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical) or not isinstance(parts, Distribution):
            raise ArgumentError.here("MixtureSameFamily: expected a Categorical and a distribution")
        count, batch = mixture.param_shape[-1], parts.batch_shape
        if (
            batch[-1:] != (count,)
            or wf.broadcast_shapes(mixture.batch_shape, batch[:-1]) != batch[:-1]
        ):
            raise ArgumentError.here(
                f"MixtureSameFamily: expected components of batch_shape (..., {count}) for weights "
                f"{tuple(mixture.param_shape)}, got {tuple(batch)}"
            )
        self._mixture_distribution: Any = mixture
        self._component_distribution: Any = parts
        super().__init__(batch[:-1], parts.event_shape, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with parameters broadcast to `batch_shape`."""
        count = self._component_distribution.batch_shape[-1]
        parts = self._component_distribution.expand((*batch_shape, count))
        weights = self._mixture_distribution.expand(batch_shape)
        return self._copied(
            batch_shape, _instance, _mixture_distribution=weights, _component_distribution=parts
        )

    def _weights(self) -> Any:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * len(self._event_shape)))

    @property
    def variance(self) -> Any:
        """The mean of variances and the variance of means."""
        parts = self._component_distribution
        away = (parts.mean - self.mean.unsqueeze(self._axis)) ** 2
        return (self._weights() * (parts.variance + away)).sum(self._axis)

    def _log_prob(self, value: Any) -> Any:
        found = self._component_distribution.log_prob(value.unsqueeze(self._axis))
        return (found + self._mixture_distribution.logits).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values of shape `sample_shape + batch_shape + event_shape`, without gradient."""
        with wf.no_grad():
            parts = self._component_distribution.sample(sample_shape)
            shape = parts.shape[: parts.ndim - len(self._event_shape)]
            chosen = self._mixture_distribution._draw(shape[:-1])
            index = chosen.reshape((*shape[:-1], 1, *[1] * len(self._event_shape)))
            index = index.expand((*shape[:-1], 1, *self._event_shape))
            return parts.gather(self._axis, index).squeeze(self._axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
