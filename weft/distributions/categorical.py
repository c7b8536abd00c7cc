"""Distributions over classes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import weft.eager.functions.api as wf
from weft.distributions import constraints, draw
from weft.distributions.count import Binomial, Probabilities
from weft.distributions.distribution import Distribution
from weft.distributions.utils import formula
from weft.errors import ArgumentError, DTypeError
from weft.ir.dtype import int64

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]

_CONSTRAINTS = {"probs": constraints.simplex, "logits": constraints.real_vector}


_WEIGHTS = constraints.kind(
    "Weights", "", lambda c, x: (x >= 0).all(-1) & (x.sum(-1) > 0), event_dim=1
)()


class Categorical(Probabilities):
    """Classes 0 to n - 1, with weights `probs` (..., n) or unnormalized log probabilities.

    >>> import weft as wf
    >>> wf.distributions.Categorical(wf.tensor([1.0, 3.0])).log_prob(wf.tensor(1)).exp()
    tensor(0.7500)
    """

    arg_constraints: ClassVar[Any] = _CONSTRAINTS
    is_binary, has_enumerate_support = False, True
    mean = variance = property(lambda self: wf.full_like(self._param[..., 0], math.nan))
    mode = property(lambda self: self.probs.argmax(-1))
    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self._num_events - 1),
        is_discrete=True, event_dim=0,
    )  # fmt: skip
    _num_events = property(lambda self: self._param.shape[-1])
    _values = formula(lambda d: wf.arange(d._num_events))

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ArgumentError.here("Categorical: expected either probs or logits")
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        given = self._sound(validate_args, **{name: wf.as_tensor(given)})[name]
        if given.ndim < 1:
            raise ArgumentError.here("Categorical: expected a vector or rows of some, got a number")
        self._given = (name,)
        vars(self)[name] = (
            wf.log_softmax(given, -1) if probs is None else given / given.sum(-1, True)
        )
        self._shaped(given.shape[:-1])

    def _constraints(self) -> dict[str, Any]:
        return {**_CONSTRAINTS, "probs": _WEIGHTS}  # before they are normalized

    def _draw(self, shape: Any) -> Any:
        logs = self.logits if "logits" in self._given else self.probs.log()
        return draw.categorical(logs, shape)

    def _log_prob(self, value: Any) -> Any:
        index, logs = value.to(int64).unsqueeze(-1), self.logits
        shape = wf.broadcast_shapes(index.shape[:-1], logs.shape[:-1])
        logs, index = logs.expand((*shape, -1)), index.expand((*shape, 1))
        return logs.gather(-1, index).squeeze(-1)

    def _entropy(self) -> Any:
        logs = self.logits.clamp(min=wf.finfo(self.logits.dtype).min)
        return -(logs * self.probs).sum(-1)


class OfCategorical(Distribution):
    """A distribution of vectors with the parameters of a categorical one."""

    arg_constraints: Any = _CONSTRAINTS
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    _param = property(lambda self: self._categorical._param)

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical: Any = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        self._shaped(shape[:-1], shape[-1:])
        self._sound(validate_args)


class OneHotCategorical(OfCategorical):
    """One-hot vectors of classes."""

    support, has_enumerate_support = constraints.one_hot, True
    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._hot(self.probs.argmax(-1)))
    variance = property(lambda self: self.probs * (1 - self.probs))
    _draw = formula(lambda d, shape: d._hot(d._categorical._draw(shape[:-1])))
    _log_prob = formula(lambda d, x: d._categorical._log_prob(x.argmax(-1)))
    _entropy = formula(lambda d: d._categorical.entropy())
    _values = formula(lambda d: wf.eye(d._event_shape[0], dtype=d._param.dtype))

    def _hot(self, classes: Any) -> Any:
        every = wf.arange(self._event_shape[0])
        return (classes.unsqueeze(-1) == every).to(self._param.dtype)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors with the gradients of the probabilities (Bengio et al., 2013)."""

    has_rsample = True
    _draw = formula(
        lambda d, shape: OneHotCategorical._draw(d, shape) + (d.probs - d.probs.detach())
    )


class Multinomial(OfCategorical):
    """How often each class comes in `total_count` draws."""

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    support = constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if type(total_count) is not int:
            raise DTypeError.here(
                f"Multinomial: expected one integer total_count, got {total_count}"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def _draw(self, shape: Any) -> Any:
        drawn = self._categorical._draw((self.total_count, *shape[:-1])).movedim(0, -1)
        ones = wf.ones_like(drawn, dtype=self._param.dtype)
        return ones.new_zeros(shape).scatter_add(-1, drawn, ones)

    def _log_prob(self, value: Any) -> Any:
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        never = (value == 0) & (self.logits == -math.inf)
        return ways + (wf.where(never, 0.0, self.logits) * value).sum(-1)

    def _entropy(self) -> Any:
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        values = counts.enumerate_support(False)[1:]
        spread = counts.log_prob(values).exp() * (values + 1).lgamma()
        return n * self._categorical.entropy() - math.lgamma(n + 1) + spread.sum((0, -1))
