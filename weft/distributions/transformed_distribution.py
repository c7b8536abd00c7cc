"""Values of a distribution, mapped by transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.distribution import Distribution
from weft.distributions.independent import Independent
from weft.distributions.transforms import ComposeTransform, Transform
from weft.distributions.utils import sum_rightmost
from weft.eager.functions.api import Size
from weft.errors import ArgumentError

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of `transforms[-1](...transforms[0](x))`, where x has another distribution.

    >>> import weft as wf
    >>> D = wf.distributions
    >>> D.TransformedDistribution(D.Uniform(0.0, 1.0), [D.ExpTransform()]).cdf(wf.tensor(2.0))
    tensor(0.6931)
    """

    arg_constraints: ClassVar[Any] = {}
    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        self.transforms: list[Any] = (
            [transforms] if isinstance(transforms, Transform) else transforms
        )
        if type(self.transforms) is not list or not all(
            [isinstance(t, Transform) for t in self.transforms]
        ):
            raise ArgumentError.here(
                f"TransformedDistribution: expected transforms, got {transforms!r}"
            )
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        rank, least = len(base_distribution.event_shape), whole.domain.event_dim
        if len(base_shape) < least:
            raise ArgumentError.here(
                f"TransformedDistribution: expected a distribution of rank {least} or more, got "
                f"batch_shape + event_shape = {tuple(base_shape)}"
            )
        shape = Size(whole.forward_shape(base_shape))
        wide = Size(whole.inverse_shape(shape))
        if wide != base_shape:
            base_distribution = base_distribution.expand(wide[: len(wide) - rank])
        if least > rank:
            base_distribution = Independent(base_distribution, least - rank)
        self.base_dist = base_distribution
        event = max(whole.codomain.event_dim, rank + whole.codomain.event_dim - least)
        cut = len(shape) - event
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with parameters broadcast to `batch_shape`."""
        shape: Any = (*batch_shape, *self._event_shape)
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        inner = shape[: len(shape) - len(self.base_dist.event_shape)]
        return self._copied(batch_shape, _instance, base_dist=self.base_dist.expand(inner))

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """Where values lie."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self._event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def _mapped(self, x: Any) -> Any:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values of shape `sample_shape + batch_shape + event_shape`, without gradient."""
        with wf.no_grad():
            return self._mapped(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values with gradients, if the base distribution has some."""
        return self._mapped(self.base_dist.rsample(sample_shape))

    def _log_prob(self, value: Any) -> Any:
        rank, total, y = len(self._event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            rank += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), rank - t.domain.event_dim)
            y = x
        inner = rank - len(self.base_dist.event_shape)
        return total + sum_rightmost(self.base_dist.log_prob(y), inner)

    def _turned(self, value: Any) -> Any:
        """`1 - value` where the transforms fall."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def _cdf(self, value: Any) -> Any:
        for t in reversed(self.transforms):
            value = t.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def _icdf(self, value: Any) -> Any:
        return self._mapped(self.base_dist.icdf(self._turned(value)))
