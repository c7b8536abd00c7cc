"""Batch axes counted as axes of one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weft.distributions import constraints
from weft.distributions.distribution import Distribution
from weft.distributions.utils import sum_rightmost
from weft.errors import ArgumentError

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution of which some batch axes belong to one value.

    Of `base_distribution`, the last `reinterpreted_batch_ndims` batch axes.

    >>> import weft as wf
    >>> normal = wf.distributions.Normal(wf.zeros(2, 3), 1.0)
    >>> wf.distributions.Independent(normal, 1).log_prob(wf.zeros(2, 3)).shape
    (2,)
    """

    arg_constraints: ClassVar[Any] = {}
    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ArgumentError.here(
                f"Independent: expected reinterpreted_batch_ndims up to {len(batch)}, the rank of "
                f"batch_shape, got {reinterpreted_batch_ndims}"
            )
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + event, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with the other batch axes broadcast to `batch_shape`."""
        own = self._event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand((*batch_shape, *own))
        return self._copied(batch_shape, _instance, base_dist=base)

    @constraints.dependent_property
    def support(self) -> Any:
        """Where values lie."""
        found, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(found, count) if count else found

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values of shape `sample_shape + batch_shape + event_shape`, without gradient."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values with gradients, if the base distribution has some."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at `value`."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """The entropy in nats."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values along a new first axis.

        Raises:
            NotImplementedError: some batch axes belong to one value.
        """
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: has no enumerate_support of several parts")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
