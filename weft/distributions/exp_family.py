"""The base of exponential families."""

from __future__ import annotations

from typing import Any

from weft.distributions.distribution import Distribution
from weft.distributions.utils import formula, quantity
from weft.func import grad

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with densities `exp(<t(x), eta> - F(eta) + k(x))`.

    A subclass that defines the natural parameters eta, `_natural_params`, the function F,
    `_log_normalizer(*eta)`, and the mean of k, `_mean_carrier_measure`, has its entropy, and the KL
    divergence of two of its instances, from the gradient of F.

    Source: Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010.
    """

    _mean_carrier_measure = quantity(lambda d: d._no("_mean_carrier_measure"))
    _natural_params = quantity(lambda d: d._no("_natural_params"))
    _log_normalizer = formula(lambda d, *eta: d._no("_log_normalizer"))

    def _means(self) -> tuple[Any, ...]:
        """The means of t: the gradient of F."""
        eta = self._natural_params
        slope = grad(lambda *x: self._log_normalizer(*x).sum(), tuple(range(len(eta))))
        return slope(*eta)

    def _entropy(self) -> Any:
        eta = self._natural_params
        found = self._log_normalizer(*eta) - self._mean_carrier_measure
        for p, mean in zip(eta, self._means(), strict=True):
            found = found - (p * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return found
