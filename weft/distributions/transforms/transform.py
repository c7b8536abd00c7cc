"""The base of transforms, their inverses, and transforms of transforms."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.utils import formula, sum_rightmost
from weft.eager.functions.api import Size
from weft.errors import ArgumentError, ShapeError

__all__ = ["ComposeTransform", "IndependentTransform", "ReshapeTransform", "Transform"]


class Transform:
    """A function of values with an inverse, at least one with `t(t.inv(t(x))) == t(x)`.

    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`. With `cache_size=1` the last
    value is kept with its result, so that its inverse is the value itself.

    Attributes:
        domain, codomain: constraints of values and results.
        bijective: whether `t.inv(t(x)) == x`.
        sign: of the derivative, of bijective functions of numbers.
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    sign: Any = property(lambda self: self._no("sign"))
    _call = formula(lambda t, x: t._no("_call"))
    _inverse = formula(lambda t, y: t._no("_inverse"))
    _log_slope = formula(lambda t, x, y: t._no("log_abs_det_jacobian"))

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError.here(f"Transform: expected cache_size 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)
        self._inv: Any = None

    def _no(self, what: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: has no {what}")

    @property
    def event_dim(self) -> Any:
        """How many of the last axes one value has, if a result has as many."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ArgumentError.here("event_dim: differs between domain and codomain")
        return self.domain.event_dim

    @property
    def inv(self) -> Any:
        """The inverse transform."""
        self._inv = _Inverse(self) if self._inv is None else self._inv
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with this `cache_size`."""
        if self._cache_size == cache_size:
            return self
        new = copy.copy(self)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, x: Any) -> Any:
        """The results for values."""
        if self._cache_size and x is self._cached[0]:
            return self._cached[1]
        y = self._call(x)
        self._cached = (x, y) if self._cache_size else self._cached
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._cached[1]:
            return self._cached[0]
        x = self._inverse(y)
        self._cached = (x, y) if self._cache_size else self._cached
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the magnitude of the Jacobian's determinant, at `x` with result `y`."""
        return self._log_slope(x, y)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of results for values of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of values for results of this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Alike(Transform):
    """A transform without parameters."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)


class _Inverse(Transform):
    def __init__(self, transform: Any) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = constraints.dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = constraints.dependent_property(lambda self: self._inv.domain, is_discrete=False)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    with_cache = formula(lambda t, cache_size=1: t._inv.with_cache(cache_size).inv)
    forward_shape = formula(lambda t, shape: t._inv.inverse_shape(shape))
    inverse_shape = formula(lambda t, shape: t._inv.forward_shape(shape))
    log_abs_det_jacobian = formula(lambda t, x, y: -t._inv.log_abs_det_jacobian(y, x))
    __call__ = formula(lambda t, x: t._inv._inv_call(x))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{self._inv!r}.inv"


def _of_rank(constraint: Any, rank: int) -> Any:
    more = rank - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Transforms one after the other; the first of `parts` is applied first."""

    bijective = property(lambda self: all([p.bijective for p in self.parts]))

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [p.with_cache(cache_size) if cache_size else p for p in parts]

    def _ranks(self) -> tuple[int, int]:
        """How many axes one value has at the start, and at the end."""
        start, rank = 0, 0
        for part in self.parts:
            more = max(part.domain.event_dim - rank, 0)  # axes that this part needs besides
            start += more
            rank += more + part.codomain.event_dim - part.domain.event_dim
        return start, rank

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Where values lie."""
        first = self.parts[0].domain if self.parts else constraints.real
        return _of_rank(first, self._ranks()[0])

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """Where results lie."""
        last = self.parts[-1].codomain if self.parts else constraints.real
        return _of_rank(last, self._ranks()[1])

    @property
    def sign(self) -> Any:
        """The product of the signs."""
        found: Any = 1
        for part in self.parts:
            found = found * part.sign
        return found

    @property
    def inv(self) -> Any:
        """The inverses in the opposite order."""
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transforms with this `cache_size`."""
        same = self._cache_size == cache_size
        return self if same else ComposeTransform(self.parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __call__(self, x: Any) -> Any:
        """The results for values."""
        for part in self.parts:
            x = part(x)
        return x

    def _log_slope(self, x: Any, y: Any) -> Any:
        rank, total = self.domain.event_dim, 0.0
        for i, part in enumerate(self.parts):
            z = y if i == len(self.parts) - 1 else part(x)
            found = part.log_abs_det_jacobian(x, z)
            total = total + sum_rightmost(found, rank - part.domain.event_dim)
            rank += part.codomain.event_dim - part.domain.event_dim
            x = z
        return total if self.parts else wf.zeros_like(x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of results for values of this shape."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of values for results of this shape."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform: Final = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform of which `reinterpreted_batch_ndims` batch axes belong to one value."""

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)
    domain = constraints.dependent_property(
        lambda t: constraints.independent(t.base_transform.domain, t.reinterpreted_batch_ndims),
        is_discrete=False,
    )
    codomain = constraints.dependent_property(
        lambda t: constraints.independent(t.base_transform.codomain, t.reinterpreted_batch_ndims),
        is_discrete=False,
    )
    forward_shape = formula(lambda t, shape: t.base_transform.forward_shape(shape))
    inverse_shape = formula(lambda t, shape: t.base_transform.inverse_shape(shape))
    _call = formula(lambda t, x: t.base_transform(_at_least(t.domain.event_dim, x)))
    _inverse = formula(lambda t, y: t.base_transform.inv(_at_least(t.codomain.event_dim, y)))

    def __init__(
        self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _log_slope(self, x: Any, y: Any) -> Any:
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(found, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform}, {self.reinterpreted_batch_ndims})"


def _at_least(rank: int, x: Any) -> Any:
    if x.ndim < rank:
        raise ShapeError.here(f"transform: expected rank {rank} or more, got {tuple(x.shape)}")
    return x


class ReshapeTransform(Transform):
    """Values of `in_shape` as values of `out_shape`, which have as many elements."""

    bijective = True
    domain = constraints.dependent_property(lambda t: _of_rank(constraints.real, len(t.in_shape)))
    codomain = constraints.dependent_property(
        lambda t: _of_rank(constraints.real, len(t.out_shape))
    )
    forward_shape = formula(lambda t, shape: _ending(shape, t.in_shape, t.out_shape))
    inverse_shape = formula(lambda t, shape: _ending(shape, t.out_shape, t.in_shape))
    _call = formula(lambda t, x: x.reshape(t.forward_shape(x.shape)))
    _inverse = formula(lambda t, y: y.reshape(t.inverse_shape(y.shape)))
    _log_slope = formula(lambda t, x, y: x.new_zeros(x.shape[: x.ndim - len(t.in_shape)]))

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            shapes = f"{tuple(in_shape)} and {tuple(out_shape)}"
            raise ShapeError.here(f"ReshapeTransform: expected as many elements, got {shapes}")


def _ending(shape: Any, old: Size, new: Size) -> Size:
    """A shape that ends with `old`, with `new` instead."""
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise ShapeError.here(f"ReshapeTransform: expected {tuple(old)} last, got {tuple(shape)}")
    return Size((*shape[:cut], *new))
