"""Which transform leads from all real numbers into a constraint.

>>> import weft as wf
>>> D = wf.distributions
>>> D.transform_to(D.constraints.greater_than(2.0))(wf.tensor(0.0))
tensor(3.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.distributions import constraints
from weft.distributions import transforms as t
from weft.distributions.utils import NUMBERS
from weft.errors import DTypeError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms, by the class of a constraint."""

    def __init__(self) -> None:
        self._registry: dict[Any, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Use `factory(constraint)` for this class, or that of this one; else a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise DTypeError.here(f"register: expected a constraint or a class, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """A transform from real numbers into the constraint, if one is registered."""
        kind = type(constraint)
        if kind not in self._registry:
            raise NotImplementedError(f"{kind.__name__}: has no transform; register one")
        return self._registry[kind](constraint)


biject_to: Final = ConstraintRegistry()
"""Bijective transforms."""
transform_to: Final = ConstraintRegistry()
"""Transforms that need not be bijective, for optimizers: of the simplex, softmax."""


def _above(c: Any) -> Any:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(c.lower_bound, 1)])


def _below(c: Any) -> Any:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(c.upper_bound, -1)])


def _between(c: Any) -> Any:
    low, high = c.lower_bound, c.upper_bound
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS) and (low, high) == (0, 1):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _shared(of: ConstraintRegistry) -> dict[Any, Callable[[Any], Any]]:
    """The factories of both registries, of parts by the registry itself."""
    return {
        constraints.real: lambda c: t.identity_transform,
        constraints.greater_than: _above,
        constraints.greater_than_eq: _above,
        constraints.less_than: _below,
        constraints.interval: _between,
        constraints.half_open_interval: _between,
        constraints.corr_cholesky: lambda c: t.CorrCholeskyTransform(),
        constraints.independent: lambda c: t.IndependentTransform(
            of(c.base_constraint), c.reinterpreted_batch_ndims
        ),
        constraints.cat: lambda c: t.CatTransform([*map(of, c.cseq)], c.dim, c.lengths),
        constraints.stack: lambda c: t.StackTransform([*map(of, c.cseq)], c.dim),
    }


for _registry in (biject_to, transform_to):
    for _constraint, _factory in _shared(_registry).items():
        _registry.register(_constraint, _factory)
biject_to.register(constraints.simplex, lambda c: t.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: t.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: t.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: t.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: t.PositiveDefiniteTransform())
