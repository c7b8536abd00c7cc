"""Transforms of numbers."""

from __future__ import annotations

import math
from typing import Any

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.transforms.transform import Alike, Transform
from weft.distributions.utils import NUMBERS, broadcast_all, formula
from weft.special import expit

__all__ = [
    "AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform",
    "PowerTransform", "SigmoidTransform", "SoftplusTransform", "TanhTransform",
]  # fmt: skip


class ExpTransform(Alike):
    """The exponential."""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1
    _call = formula(lambda t, x: x.exp())
    _inverse = formula(lambda t, y: y.log())
    _log_slope = formula(lambda t, x, y: x)


def _inside(y: Any) -> Any:
    """Numbers of the unit interval, moved off its ends."""
    info = wf.finfo(y.dtype)
    return y.clamp(min=info.tiny, max=1 - info.eps)


def clipped_sigmoid(x: Any) -> Any:
    """The logistic function, never 0 or 1."""
    return _inside(expit(x))


class SigmoidTransform(Alike):
    """The logistic function."""

    domain, codomain, bijective, sign = constraints.real, constraints.unit_interval, True, 1
    _call = formula(lambda t, x: clipped_sigmoid(x))
    _inverse = formula(lambda t, y: _inside(y).log() - (-_inside(y)).log1p())
    _log_slope = formula(lambda t, x, y: -wf.softplus(-x) - wf.softplus(x))


class SoftplusTransform(Alike):
    """`log(1 + exp(x))`."""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1
    _call = formula(lambda t, x: wf.softplus(x))
    _inverse = formula(lambda t, y: (-(-y).expm1()).log() + y)
    _log_slope = formula(lambda t, x, y: -wf.softplus(-x))


class TanhTransform(Alike):
    """The hyperbolic tangent; with `cache_size=1`, results near 1 keep their values."""

    domain, codomain, bijective, sign = constraints.real, constraints.interval(-1.0, 1.0), True, 1
    _call = formula(lambda t, x: x.tanh())
    _inverse = formula(lambda t, y: y.atanh())
    _log_slope = formula(lambda t, x, y: 2.0 * (math.log(2.0) - x - wf.softplus(-2.0 * x)))


class AbsTransform(Alike):
    """The magnitude; its inverse is the positive number."""

    domain, codomain = constraints.real, constraints.positive
    _call = formula(lambda t, x: x.abs())
    _inverse = formula(lambda t, y: y)


class PowerTransform(Transform):
    """`x ** exponent` for positive x; the exponent is a number or a tensor."""

    domain, codomain, bijective = constraints.positive, constraints.positive, True
    sign = property(lambda self: self.exponent.sign())
    _call = formula(lambda t, x: x**t.exponent)
    _inverse = formula(lambda t, y: y ** (1 / t.exponent))
    _log_slope = formula(lambda t, x, y: (t.exponent * y / x).abs().log())
    forward_shape = inverse_shape = formula(
        lambda t, shape: wf.broadcast_shapes(shape, t.exponent.shape)
    )

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)


def _same(x: Any, y: Any) -> bool:
    return x is y or bool(wf.as_tensor(x == y).all())


def _sign(scale: Any) -> Any:
    return int(scale > 0) - int(scale < 0) if isinstance(scale, NUMBERS) else scale.sign()


class AffineTransform(Transform):
    """`loc + scale * x`, for numbers or tensors `loc` and `scale`.

    One value has `event_dim` axes.
    """

    bijective = True
    domain = codomain = constraints.dependent_property(
        lambda self: (
            constraints.independent(constraints.real, self.event_dim)
            if self.event_dim
            else constraints.real
        ),
        is_discrete=False,
    )
    event_dim: Any = property(lambda self: self._event_dim)
    sign = property(lambda self: _sign(self.scale))
    _call = formula(lambda t, x: t.loc + t.scale * x)
    _inverse = formula(lambda t, y: (y - t.loc) / t.scale)
    forward_shape = inverse_shape = formula(
        lambda t, shape: wf.broadcast_shapes(
            shape, *[getattr(p, "shape", ()) for p in (t.loc, t.scale)]
        )
    )

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    def __eq__(self, other: object) -> bool:
        alike = isinstance(other, AffineTransform)
        return alike and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    def _log_slope(self, x: Any, y: Any) -> Any:
        found = broadcast_all(self.scale, x)[0].abs().log()
        return found.sum(tuple(range(-self._event_dim, 0))) if self._event_dim else found


class CumulativeDistributionTransform(Transform):
    """The `cdf` of a distribution of numbers, which has `icdf` and `log_prob`."""

    bijective, sign, codomain = True, 1, constraints.unit_interval
    domain = property(lambda self: self.distribution.support)
    _call = formula(lambda t, x: t.distribution.cdf(x))
    _inverse = formula(lambda t, y: t.distribution.icdf(y))
    _log_slope = formula(lambda t, x, y: t.distribution.log_prob(x))

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution
